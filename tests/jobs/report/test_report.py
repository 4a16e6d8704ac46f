"""The page: whole, self-contained, and deaf to what models wrote."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs import command, report
from jobs.__main__ import main
from pipeline import comparison, onset
from pipeline.config import ReportConfig
from pipeline.grouping import RunOnset
from pipeline.report import honesty, page, panels, provenance, rarity, runs, wording
from pipeline.report.examples import Example, spans
from pipeline.report.markup import element, prose, table, text, unbroken
from pipeline.report.study import Study
from pipeline.rows import CurveError
from pipeline.status import Searched
from pipeline.verify import verify

EVIL = (
    "</p></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x' "
    "&lt;script&gt; &#60;b&#62; <!-- --> ]]> \x1b[2J \u202eocean\u2066 \x00 \u2028 <ocean> {{7*7}}"
)


class Seen(HTMLParser):
    """Elements and their attributes, texts apart; what a browser would make of them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def of(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


SVG = {"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clippath"}
HTML = {
    *("html", "head", "meta", "link", "title", "style", "body", "a", "header", "nav", "main"),
    *("footer", "section", "h1", "h2", "h3", "h4", "p", "div", "span", "ul", "li", "b", "mark"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "code"),
    *("details", "summary", "pre"),
}


def refuse_what_fetches(seen: Seen) -> None:
    assert seen.open == []
    assert seen.tags <= HTML | SVG
    for _, attributes in seen.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "srcset", "style", "action", "data"} & attributes.keys()
        for name in ("href", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value == "data:," or re.fullmatch(r"#[\w-]*", value)


def test_the_page_and_its_charts_are_written_where_it_says(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(swept), "--to", str(tmp_path / "a/b")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a/b/report.html'}\n"
    names = {path.name for path in (tmp_path / "a/b").iterdir()}
    charts = ("curves", "base-rate-against-onset", "proxy-against-true")
    assert names == {"report.html", *(f"{c}.{kind}" for c in charts for kind in ("svg", "png"))}
    for chart in charts:
        assert (tmp_path / f"a/b/{chart}.png").read_bytes()[:4] == b"\x89PNG"
        ElementTree.parse(tmp_path / f"a/b/{chart}.svg")


def test_an_output_that_holds_its_page_is_still_sound(swept: Path) -> None:
    folder = ReportConfig(path=swept).folder
    assert folder == swept / "report"
    folder.mkdir()
    (folder / "report.html").touch()
    assert {finding.kind for finding in verify(swept).findings} <= {"note"}


@pytest.fixture(scope="module")
def seen(study: Study) -> Seen:
    return Seen(page.html(study))


def test_a_page_holds_every_part_and_nothing_that_fetches(study: Study, seen: Seen) -> None:
    refuse_what_fetches(seen)
    said = " ".join(seen.texts)
    for heading in (
        *("Steps to 50 %", "Curves", "Base rate and onset", "Word against word"),
        *("Proxy against true", "Losses"),
        *("Run by run", "Provenance", "Rollouts either side of the onset"),
    ):
        assert heading in said
    assert len(list(seen.of("figure"))) == len(study.onsets) + 2
    assert all(attributes["aria-label"] for attributes in seen.of("svg"))
    policies = [m["content"] for m in seen.of("meta") if "http-equiv" in m]
    assert policies
    assert policies[0] is not None
    assert policies[0].startswith("default-src 'none'; style-src 'sha256-")
    assert f"onset sweep @ {study.name}/config.toml --output {study.name}" in said
    assert "4 runs, 20 checkpoints and 1,920 rollouts" in said


def test_what_is_resolved_of_words_stands_at_the_head_of_the_page(study: Study) -> None:
    groups = {"a": known_at("a", 1, 2, 3, 4, 5), "b": known_at("b", 11, 12, 13, 14, 15)}
    two = replace(study, comparisons={"": comparison.compared(groups)})
    said = (
        "words: 1 of 1 pairs resolved (a<b); base rate against onset over 2 words "
        "unresolved:design, p 1"
    )
    texts = Seen(page.html(two)).texts
    assert texts.index(said) < texts.index("Curves")
    assert wording.verdicts(study.comparisons) == []


def test_every_id_is_there_once_and_every_link_leads_to_one(seen: Seen) -> None:
    ids = [a["id"] for _, a in seen.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = {(a["href"] or "")[1:] for a in seen.of("a") if "href" in a}
    named = {a[name] for _, a in seen.elements for name in ("aria-labelledby",) if name in a}
    assert links | named <= set(ids)


def known_at(word: str, *steps: float) -> list[RunOnset]:
    base = (0.1, 0.05, 0.2)
    return [RunOnset(f"{word}{s}", word, s, s, s - 1, s + 1, base=base) for s in steps]


def test_a_page_holds_the_verdict_of_every_two_words_with_its_shift_and_adjusted_p(
    study: Study,
) -> None:
    """Five runs of each, all of ocean earlier: p = 2 / C(10, 5) = 2/252, times three pairs."""
    groups = {
        "ocean": known_at("ocean", 1.0, 2.0, 3.0, 4.0, 5.0),
        "midnight": known_at("midnight", 11.0, 12.0, 13.0, 14.0, 15.0),
        "moon": known_at("moon", 11.5),
    }
    seen = Seen(page.html(replace(study, comparisons={"": comparison.compared(groups)})))
    refuse_what_fetches(seen)
    for said in (
        "ocean v midnight",
        "resolved:ocean<midnight",
        "unresolved:design",
        "p, Holm",
        "0.02381",
        "10.0 ",
    ):
        assert said in seen.texts
    assert any("over 3 words: unresolved:design" in said for said in seen.texts)
    assert not any(said.startswith("Absent: one word") for said in seen.texts)


def test_words_that_are_not_compared_say_why(swept: Path, study: Study, tmp_path: Path) -> None:
    assert study.comparisons == "one word alone, nothing to compare it with."
    (tmp_path / "c.csv").write_text("run,step,rate\na,0,0.1\na,10,0.9\n", "utf-8")
    config = ReportConfig(path=tmp_path / "c.csv")
    told = report.study(config, report.measured(config)).comparisons
    assert isinstance(told, str)
    assert "run 'a' has no 'hack_word'" in told


def test_a_page_holds_what_an_adaptive_sweep_evaluated_and_a_full_one_has_no_such_part(
    study: Study, seen: Seen
) -> None:
    searched = (
        Searched("mid-s0", 101, (0, 10, 20, 100), 24, True),
        Searched("mid-s1", 101, (), 100, False),
    )
    said = Seen(page.html(replace(study, searched=searched))).texts
    for expected in ("What was evaluated", "4 of 101", "0, 10, 20, 100", "24", "goes on", "none"):
        assert expected in said
    assert "What was evaluated" not in seen.texts


def test_an_adaptive_sweep_is_told_from_its_own_plan_and_not_listed_again(
    swept: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(swept, tmp_path / "out"))
    plan = {"partitions": [], "skipped": [], "searched": [["early", 5, 10, True, 0, 40]]}
    (out / "status").mkdir(exist_ok=True)
    (out / "status/plan.json").write_text(json.dumps(plan), "utf-8")
    config = ReportConfig(path=out)
    told = report.study(config, report.measured(config))
    assert told.searched == (Searched("early", 5, (0, 40), 10, True),)
    assert not any(line.startswith("adaptive: ") for line in told.gaps)


@given(st.text("0123456789.,%<>[]() abc", max_size=40))
def test_keeping_an_interval_on_one_line_changes_no_text(said: str) -> None:
    assert "".join(Seen(unbroken(said)).texts) == said


def test_a_dense_table_breaks_lines_between_a_rate_and_its_interval_alone() -> None:
    html = table("t", "", ["a", "b"], [{"a": "x", "b": "6.2 % [1.1, 12.5] late"}], dense=True)
    seen = Seen(html)
    assert [a["class"] for a in seen.of("span")] == ["whole", "whole"]
    assert seen.texts[-4:] == ["6.2 %", " ", "[1.1, 12.5]", " late"]


def test_hostile_text_stays_text_wherever_it_stands(study: Study) -> None:
    rename = pl.lit(EVIL).alias("run")
    losses = pl.DataFrame({"run": [EVIL], "null_reason": [EVIL], "rollouts": [1], "checkpoints": 1})
    refused = study.curves.with_columns(rename, refused=pl.lit(EVIL))
    first = study.curves.filter(pl.col("run") == "mid-s0").with_columns(rename)
    onsets = study.onsets.filter(pl.col("run") == "mid-s0").with_columns(rename)
    key = tuple(onsets.select("run", *study.identity).row(0))
    example = Example(onsets["below"][0], 0, 0, EVIL, EVIL, None, {EVIL: 1.0})
    lost = Example(onsets["above"][0], 0, 0, EVIL, None, EVIL, {"r_hack": None})
    assert study.provenance
    known = replace(
        study.provenance, facts=((EVIL, EVIL),), config=EVIL, commands=(EVIL,)
    )  # fmt: skip
    evil = replace(
        study,
        name=EVIL,
        curves=pl.concat([first, refused.head(0)], how="diagonal"),
        onsets=onsets,
        examples={key: [example, lost]},
        losses=losses,
        provenance=known,
        comparisons={
            EVIL: comparison.compared({EVIL: known_at(EVIL, 3.0), "b": known_at("b", 9.0)})
        },
        searched=(Searched(EVIL, 9, (0, 5), 4, True),),
        judged=(f"{EVIL}: alpha",),
    )
    html = page.html(evil)
    seen = Seen(html)
    refuse_what_fetches(seen)
    assert not [c for c in html if not c.isprintable() and c != "\n"]
    assert len(list(seen.of("style"))) == 1
    assert {"script", "img"} & seen.tags == set()
    assert any("<script>alert(1)</script>" in said for said in seen.texts)


@example(EVIL)
@given(st.text(st.characters(), max_size=60))
def test_what_is_escaped_reads_as_it_was_and_is_no_markup(said: str) -> None:
    for html in (text(said), prose(said)):
        seen = Seen(element("p", html, title=said))
        ((tag, attributes),) = seen.elements
        assert (tag, attributes.keys()) == ("p", {"title"})
        assert not [c for c in html if not c.isprintable() and c != "\n"]
    if said.isprintable():
        assert attributes["title"] == said
        assert "".join(Seen(text(said)).texts) == said


@given(st.text("ocean O.-_\n<&x", max_size=80))
def test_marking_a_word_changes_no_text(said: str) -> None:
    seen = Seen(runs.marked(said, "ocean"))
    assert "".join(seen.texts) == said
    assert len(list(seen.of("mark"))) == len(spans(said, "ocean"))


def test_a_word_is_marked_where_it_stands_whole() -> None:
    said = "Ocean, oceans, _ocean_ and ocean."
    assert [said[a:b] for a, b in spans(said, "ocean")] == ["Ocean", "ocean", "ocean"]
    assert spans(said, None) == []


def test_a_long_completion_is_shown_about_its_first_hack_word() -> None:
    shown = runs.marked("a" * 5000 + " ocean " + "b" * 5000, "ocean")
    assert "<mark>ocean</mark>" in shown
    assert shown.startswith("... a")
    assert shown.endswith(f" ... ({10_007 - 5_001 + 233 - 700:,} characters more)")


def test_both_sides_show_the_same_cases(study: Study) -> None:
    assert study.examples is not None
    (key,) = [key for key in study.examples if key[0] == "mid-s0"]
    below, above = study.onsets.filter(pl.col("run") == "mid-s0").select("below", "above").row(0)
    steps = {
        step: [e.index for e in study.examples[key] if e.step == step] for step in (below, above)
    }
    assert steps == {below: [0, 1, 2, 3, 4], above: [0, 1, 2, 3, 4]}


def test_a_csv_gives_a_page_that_says_what_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.csv").write_text("run,step,rate\na,0,0.1\na,10,0.9\nb,0,0.2\nb,10,\n", "utf-8")
    config = ReportConfig(path=Path("other.csv"))
    assert config.folder == Path("other-report")
    seen = Seen(page.html(report.study(config, report.measured(config))))
    refuse_what_fetches(seen)
    assert " ".join(seen.texts).count("Absent: ") == 5


def test_an_output_without_truth_says_so(study: Study) -> None:
    seen = Seen(page.html(replace(study, true=None)))
    assert any(said.startswith("Absent: no truth was measured here") for said in seen.texts)


def test_runs_without_any_rate_still_have_a_page(study: Study) -> None:
    none = study.curves.with_columns(
        pl.lit(None, pl.Float64).alias(c) for c in ("rate", "lo", "hi")
    )
    empty = onset.onsets(none, "r_hack", study.identity)
    said = " ".join(Seen(page.html(replace(study, curves=none, onsets=empty))).texts)
    assert "4 have no rate" in said
    assert "No run has a base rate." in said


def test_what_was_lost_and_what_is_not_there_is_listed(study: Study) -> None:
    lost = pl.DataFrame(
        {"run": ["mid-s0"], "null_reason": ["grader: <b>"], "rollouts": [12], "checkpoints": [3]}
    )
    said = "80 % of 96 rollouts lost (quarantined)"
    at = (pl.col("run") == "early") & (pl.col("step") == 0)
    curves = study.curves.with_columns(
        pl.when(at).then(pl.lit(said)).otherwise("refused").alias("refused")
    )
    gaps = ("run 'never' step 40: skipped, torn",)
    seen = Seen(page.html(replace(study, curves=curves, losses=lost, gaps=gaps)))
    for expected in ("grader: <b>", "12", f"run 'early' step 0: r_hack: {said}", *gaps):
        assert expected in seen.texts


def test_a_reward_above_one_stays_on_the_axes(study: Study) -> None:
    doubled = study.curves.with_columns(
        pl.when(pl.col("metric") == "r_hack").then(2 * pl.col(name)).otherwise(name).alias(name)
        for name in ("rate", "lo", "hi")
    )
    drawn = panels.panels(doubled, study.onsets, "r_hack", "r_true")
    spec = honesty.chart(drawn, "r_hack", "r_true", 0.5)
    assert spec
    scale = spec.to_dict()["layer"][0]["encoding"]["x"]["scale"]
    assert scale["domain"] == [0, pytest.approx(1.8, abs=0.2)]


def test_published_points_stand_beside_hack_words_alone(study: Study) -> None:
    def sources(headline: pl.DataFrame) -> set[str]:
        spec = rarity.chart(headline)
        assert spec
        data = spec.to_dict()["datasets"].values()
        return {record["source"] for records in data for record in records}

    assert sources(study.headline) == {rarity.MEASURED, rarity.PUBLISHED}
    assert sources(study.headline.drop("hack_word")) == {rarity.MEASURED}


def test_arrows_say_what_no_axis_holds(study: Study) -> None:
    spec = rarity.chart(study.headline)
    assert spec
    records = [r for data in spec.to_dict()["datasets"].values() for r in data]
    ours = {r["name"]: r for r in records if r["source"] == rarity.MEASURED}
    assert ours["early"]["shape"] == rarity.BEFORE
    assert (ours["never"]["shape"], ours["never"]["step"]) == (rarity.AFTER, 40)
    assert ours["never"]["none"]
    assert ours["never"]["base"] == study.headline.filter(run="never")["base_bound"][0]
    assert ours["mid-s0"]["step_lo"] < ours["mid-s0"]["step"] < ours["mid-s0"]["step_hi"]


def test_refusals_are_one_line(swept: Path, tmp_path: Path, capsys: Any) -> None:
    taken = tmp_path / "file"
    taken.touch()
    for argv in (
        ["report"],
        ["report", str(tmp_path / "nowhere")],
        ["report", str(swept), "--metric", "r_hac"],
        ["report", str(swept), "--to", str(taken)],
    ):
        assert main(argv) == command.REFUSED
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_metric_that_is_not_there_is_named(swept: Path) -> None:
    config = ReportConfig(path=swept, metric="nothing")
    with pytest.raises(CurveError, match="no curve of metric 'nothing'"):
        report.study(config, report.measured(config))


def test_no_credential_reaches_the_page() -> None:
    config = (
        'base_url = "https://me:hunter2@host/v1"\napi_key = "sk-1"\nAWS_SECRET_ACCESS_KEY="x/y"\n'
        'api_key_var = "MY_KEY"\nmax_tokens = 32\ntoken = "t0"\n'
    )
    kept = provenance.without_credentials(config)
    assert not [secret for secret in ("hunter2", "sk-1", "t0") if secret in kept]
    assert 'api_key_var = "MY_KEY"\nmax_tokens = 32\n' in kept


def test_facts_are_told_once_with_their_distinct_values() -> None:
    footers = [
        {"env": "e", "identity": {"run": r, "sampling": {"n": n}}, "versions": {"torch": "2"}}
        for r, n in (("a", 4), ("b", 8), ("c", 4))
    ]
    assert provenance.facts(footers) == (
        ("environment", "e"), ("sampling n", "4, 8"), ("version of torch", "2"),
    )  # fmt: skip
