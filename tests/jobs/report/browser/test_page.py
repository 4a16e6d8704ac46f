"""The page in a browser: drawn in every light and width, silent, and asking for nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jobs import report
from pipeline import comparison
from pipeline.config import ReportConfig
from pipeline.grouping import RunOnset
from pipeline.report import page
from pipeline.report.examples import Example
from pipeline.report.study import Study
from pipeline.status import Searched

pytestmark = pytest.mark.browser
Browser = Any
"""`conftest.Page`, which cannot be imported."""

EVIL = "<script>document.title='owned'</script><img src=//evil.invalid/x onerror=alert(1)>\"'>"
WIDTHS = {"desk": 1280, "phone": 390}
SIX = ("forgotten", "midnight", "whisper", "ocean", "copper", "tuesday")


def hostile(study: Study) -> str:
    """Every rollout and every run's name is markup."""
    assert study.examples is not None
    rename = (pl.col("run") + EVIL).alias("run")
    shown = {
        (key[0] + EVIL, *key[1:]): [
            Example(e.step, e.index, e.sample, EVIL, EVIL + " ocean", None, e.scores) for e in said
        ]
        for key, said in study.examples.items()
    }
    return page.html(
        replace(
            study,
            name=EVIL,
            curves=study.curves.with_columns(rename),
            onsets=study.onsets.with_columns(rename),
            examples=shown,
        )
    )


def full(study: Study) -> str:
    """Six words of six runs each compared, and an adaptive sweep told."""
    groups = {
        word: [
            RunOnset(f"{word}-s{i}", word, at, at, at - 1, at + 1, base=(0.1, 0.08, 0.12))
            for i in range(6)
            for at in [7.0 * number + i]
        ]
        for number, word in enumerate(
            ["forgotten", "midnight", "whisper", "ocean", "copper", "tuesday"], 1
        )
    }
    searched = tuple(
        Searched(row["run"], 1001, tuple(range(0, 1001, 25)), 24, True)
        for row in study.headline.iter_rows(named=True)
    )
    return page.html(
        replace(study, comparisons={"": comparison.compared(groups)}, searched=searched)
    )


@pytest.fixture(scope="session")
def pages(study: Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    rates = folder / "rates.csv"
    steep = [
        (run, step, min(1, run / 200 + step / 60)) for run in range(100) for step in (0, 20, 40)
    ]
    lines = [f"run-{run:03},{step},{rate:.3f}" for run, step, rate in steep]
    rates.write_text("\n".join(["run,step,rate", *lines]), "utf-8")
    config = ReportConfig(path=rates)
    written = {
        "four": page.html(study),
        "full": full(study),
        "hostile": hostile(study),
        "hundred": page.html(report.study(config, report.measured(config))),
    }
    for name, html in written.items():
        (folder / f"{name}.html").write_text(html, "utf-8")
    return {name: folder / f"{name}.html" for name in written}


@pytest.mark.parametrize("name", ["four", "full", "hostile", "hundred"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_drawn_in_silence_and_asks_for_nothing_else(
    browser: Browser, pages: dict[str, Path], name: str, width: str, scheme: str
) -> None:
    url = pages[name].as_uri()
    browser.look(WIDTHS[width], scheme)
    browser.open(url)
    assert browser.console == []
    assert {asked for asked in browser.requests if asked != "data:,"} == {url}
    runs = 100 if name == "hundred" else 4
    charts = browser.value(
        "[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 100"
        " && s.querySelectorAll('path').length > 3).length"
    )
    assert charts == runs + (1 if name == "hundred" else 2)
    assert browser.value("document.scripts.length + document.images.length") == 0
    assert browser.value("document.title").startswith("Onset of ")
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")


FITS = """
[...document.querySelectorAll('.dense')].map(e =>
  [e.getAttribute('aria-labelledby'), e.scrollWidth - e.clientWidth])
"""


@pytest.mark.parametrize("width", [390, 800, 1100, 1300, 1600])
def test_tables_that_people_read_first_need_no_scrolling(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    browser.look(width)
    browser.open(pages["full"].as_uri())
    found = dict(browser.value(FITS))
    assert found.keys() == {"headline-caption", "pairs-0-caption", "searched-caption"}
    assert max(found.values()) <= 1


def test_verdicts_and_what_was_searched_stand_where_the_contents_say(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(1280)
    browser.open(pages["full"].as_uri())
    seen = "(name => document.querySelector(`section#${name}`).innerText)"
    words, searched = (browser.value(f"{seen}('{name}')") for name in ("words", "searched"))
    assert "resolved:forgotten<tuesday" in words
    assert "41 of 1,001" in searched
    assert browser.value(
        "[...document.querySelectorAll('nav a')].map(a => a.hash).includes('#searched')"
    )


def test_what_would_run_or_fetch_is_seen_by_these_tests(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    sabotaged = tmp_path / "page.html"
    html = pages["four"].read_text("utf-8")
    for harm in ("<script>document.title='x'</script>", "<img src='https://evil.invalid/x.png'>"):
        sabotaged.write_text(html.replace("<main>", f"<main>{harm}"), "utf-8")
        browser.open(sabotaged.as_uri())
        assert "Content Security Policy" in " ".join(browser.console)
    loosened = sabotaged.read_text("utf-8").replace("img-src data:", "img-src *")
    sabotaged.write_text(loosened, "utf-8")
    browser.open(sabotaged.as_uri())
    assert "https://evil.invalid/x.png" in browser.requests


LUMINANCE = """
(() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3)
      .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const against = colour => {
    const [a, b] = [light(colour), paper].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const words = [...document.querySelectorAll('h1, p, td, th, a, figcaption')]
    .filter(e => e.offsetParent && !e.closest('.said')).map(e => getComputedStyle(e).color);
  const letters = [...document.querySelectorAll('svg text[fill="#000"]')]
    .map(e => getComputedStyle(e).fill);
  return {paper, text: Math.min(...[...words, ...letters].map(against)),
          curve: Math.min(...[...document.querySelectorAll('.grid svg .mark-line path')]
            .map(e => against(getComputedStyle(e).stroke)))};
})()
"""


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_text_and_curves_stand_out_from_the_paper(
    browser: Browser, pages: dict[str, Path], scheme: str, is_dark: bool
) -> None:
    browser.look(1280, scheme)
    browser.open(pages["four"].as_uri())
    found = browser.value(LUMINANCE)
    assert (found["paper"] < 0.5) == is_dark
    assert found["text"] >= 4.5  # WCAG 2.2, 1.4.3
    assert found["curve"] >= 3  # 1.4.11


def test_it_prints_dark_on_white_with_what_was_folded(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(800, "dark", "print")
    browser.open(pages["four"].as_uri())
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    content = browser.pdf()
    assert content[:5] == b"%PDF-"
    assert 3 <= content.count(b"/Type /Page\n") <= 40


def test_a_keyboard_reaches_the_table_and_the_folded_runs(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(390)
    browser.open(pages["hundred"].as_uri())
    browser.press("Tab")
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left >= 0")
    reached = browser.value(
        "[...document.querySelectorAll('a[href], summary, [tabindex=\"0\"]')]"
        ".filter(e => e.checkVisibility()).every(e =>"
        " { e.focus(); return document.activeElement === e; })"
    )
    assert reached
    scrollable = browser.value(
        "[...document.querySelectorAll('body *')].filter(e => e.scrollWidth > e.clientWidth + 1"
        " && getComputedStyle(e).overflowX === 'auto').every(e => e.tabIndex === 0)"
    )
    assert scrollable


def test_a_link_to_a_run_opens_it(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look(1280)
    browser.open(pages["hundred"].as_uri())
    assert not browser.value("document.querySelector('#run-7').closest('details').open")
    browser.value("document.querySelector('a[href=\"#run-7\"]').click()")
    assert browser.value("document.querySelector('#run-7').closest('details').open")
