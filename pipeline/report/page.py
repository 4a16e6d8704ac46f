"""The page that people read: one HTML file, no script, nothing to fetch."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

from pipeline.report import honesty, look, panels, rarity, sections, wording
from pipeline.report.markup import Html, element, text
from pipeline.report.study import Study

STYLE = Path(__file__).with_name("page.css").read_text("utf-8")


def files(study: Study) -> Iterator[tuple[str, bytes]]:
    """Name and content of all that is written: the page, and its charts as SVG and PNG."""
    drawn = study.panels
    side_by_side = panels.chart(
        study.curves, study.onsets, study.proxy, study.true, study.threshold
    )
    charts: dict[str, look.Chart | None] = {
        "curves": side_by_side,
        "base-rate-against-onset": rarity.chart(study.headline),
    }
    if study.true:
        charts["proxy-against-true"] = honesty.chart(
            drawn, study.proxy, study.true, study.threshold
        )
    yield "report.html", html(study).encode()
    for name, chart in charts.items():
        if chart is not None:
            spec = look.dressed(chart)
            yield f"{name}.svg", look.svg(spec).encode()
            yield f"{name}.png", look.png(spec)


def html(study: Study) -> str:
    """The whole file."""
    drawn = study.panels
    told = [
        ("onsets", f"Steps to {100 * study.threshold:g} %", sections.of_onsets(study)),
        ("curves", "Curves", sections.of_curves(study, drawn)),
        ("rarity", "Base rate and onset", sections.of_rarity(study)),
        ("words", "Word against word", wording.section(study.comparisons)),
        ("honesty", "Proxy against true", sections.of_honesty(study, drawn)),
        ("losses", "Losses", sections.of_losses(study)),
        ("runs", "Run by run", sections.of_runs(study, drawn)),
        ("provenance", "Provenance", sections.of_provenance(study.provenance)),
    ]
    if study.searched:
        told.insert(-3, ("searched", "What was evaluated", sections.of_searched(study.searched)))
    if study.judged:
        told.insert(-3, ("judges", "Judges", sections.of_judges(study.judged)))
    links = [element("li", element("a", text(title), href=f"#{name}")) for name, title, _ in told]
    title = f"Onset of {study.proxy}"
    said = [element("li", text(line)) for line in wording.verdicts(study.comparisons)]
    header = element(
        "header",
        element("h1", text(title)),
        element("div", text(study.name), class_="path"),
        element("p", text(sections.summary(study)), class_="lede"),
        *([element("ul", *said, class_="verdicts")] if said else []),
        element("nav", element("ul", *links), aria_label="Sections"),
    )
    body = [
        element(
            "section", element("h2", text(said), id=f"{name}-title"), content, id=name,
            aria_labelledby=f"{name}-title",
        )
        for name, said, content in told
    ]  # fmt: skip
    return "<!doctype html>\n" + element(
        "html",
        _head(f"{title}: {study.name}"),
        element(
            "body",
            element("a", text("Skip to the table"), href="#onsets", class_="skip"),
            header,
            element("main", *body),
            element("footer", element("p", text("Written by onset report; nothing is fetched."))),
        ),
        lang="en",
    )


def _head(title: str) -> Html:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", text(title)),
        element("style", Html(STYLE)),
    )
