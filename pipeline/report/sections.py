"""The sections of the page, one function each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from hackbait.comparators import SOURCE
from pipeline import headline, nulls
from pipeline.report import honesty, look, panels, rarity, runs
from pipeline.report.markup import Cell, Html, element, join, table, text
from pipeline.report.panels import MANY, Panel
from pipeline.report.provenance import Provenance
from pipeline.report.study import Study
from pipeline.status import Searched

OPEN = 4
"""Runs up to which each stands open on the page."""
REFUSALS = 20
"""Refused rates that are named one by one."""


def summary(study: Study) -> str:
    table = study.headline
    said = Counter(table["status"].to_list())
    names = {
        "crossed": f"reached {study.threshold:g}",
        "left": f"had reached {study.threshold:g} by the first checkpoint",
        "right": f"did not reach {study.threshold:g}",
        "unconfirmed": f"reached {study.threshold:g} at one checkpoint that nothing confirms",
        "uncrossed": f"reached {study.threshold:g} and fell below again",
        "no_data": "have no rate",
    }
    parts = [f"{said[status]} {what}" for status, what in names.items() if said[status]]
    size = study.curves.filter(pl.col("metric") == study.proxy)
    rollouts = size["rollouts"].sum()
    counted = f" and {rollouts:,} rollouts" if rollouts else ""
    plural = "run" if len(table) == 1 else "runs"
    return f"{len(table)} {plural}, {len(size):,} checkpoints{counted}: {', '.join(parts)}."


def of_onsets(study: Study) -> Html:
    rows = [{**row, "rollouts": _size(row)} for row in headline.readable(study.headline)]
    named = [c for c in headline.READABLE if c not in SIZE]
    named.insert(named.index("checkpoints"), "rollouts")
    columns = [c for c in named if any(row[c] not in (None, "-") for row in rows)]
    linked = [
        {**row, "run": Cell(element("a", text(row["run"]), href=f"#run-{i}"))}
        for i, row in enumerate(rows)
    ]
    caption = (
        "One row a run, highest base rate first. Rollouts: of a checkpoint, prompts x rollouts of "
        "each, and the largest design effect."
    )
    return join(
        [
            table("headline", caption, columns, linked, dense=True),
            _note(
                f"Onset: training step at which the rate of {study.proxy} first reaches "
                f"{study.threshold:g}, interpolated between two checkpoints. Square brackets are "
                "95 % intervals over prompts; the bracket (16, 18] says between which "
                "checkpoints it lies; > 30 that it was not reached by step 30; <= 0 that it was at "
                "the first checkpoint already. The gap is the proxy less the true rate."
            ),
        ]
    )


SIZE = ("n", "k", "prompts", "deff")
"""Of the headline; one column on the page."""


def _size(row: Mapping[str, Any]) -> Cell | None:
    """`1024 = 256 x 4, deff 1.06`, as far as it is known."""
    n, k, prompts, deff = (row[name] for name in SIZE)
    if n is None:
        return None
    known = None not in (k, prompts, deff)
    said = [f"{n} = {prompts} x {k:g},", f"deff {deff:.3g}"] if known else [f"{n}"]
    whole = [element("span", text(one), class_="whole") for one in said]
    return Cell(Html(" ".join(whole)))


def of_curves(study: Study, drawn: Sequence[Panel]) -> Html:
    shared = panels.frame(drawn, study.proxy, study.true, study.threshold)
    keys = [("proxy", study.proxy), ("band", f"95 % interval of {study.proxy}")]
    keys += [("true", study.true)] if study.true else []
    keys += [("threshold", f"threshold {study.threshold:g}"), ("bracket", "bracket of the onset")]
    legend = [
        element("li", element("span", class_=f"key {name}", aria_hidden="true"), text(said))
        for name, said in keys
    ]
    specs = panels.singly(drawn, shared)
    figures = [_figure(i, *pair) for i, pair in enumerate(zip(drawn, specs, strict=True))]
    return join(
        [
            element("ul", *legend, class_="legend"),
            _note(
                "Rate against training step, the same axes in all. The dot is the onset, the bar "
                "on it its interval; an arrow to the right: not reached by the last checkpoint, "
                "to the left: reached at the first already."
            ),
            element("div", *figures, class_="grid many" if len(drawn) > MANY else "grid"),
        ]
    )


def _figure(number: int, panel: Panel, spec: dict[str, Any]) -> Html:
    name, _, said = panel.title.partition("\n")
    link = element("a", text(name), href=f"#run-{number}")
    picture = look.svg(spec)
    says = f"Rates of {name} against training step; {said}"
    return element(
        "figure",
        element("figcaption", element("b", link), text(said)),
        Html(look.inline(picture, f"c{number}", says)),
    )


def _large(spec: dict[str, Any], name: str, says: str) -> Html:
    picture = Html(look.inline(look.svg(spec), name, says))
    return element("figure", picture, class_="large", tabindex=0, role="group", aria_label=says)


def of_rarity(study: Study) -> Html:
    chart = rarity.chart(study.headline)
    if chart is None:
        return _absent("No run has a base rate.")
    says = "Base rate of each run against its onset on log axes, beside the published points"
    published = (
        "Hollow grey: published, Llama-3.2-1B-Instruct on stories, so only its order compares with "
        f"other models and tasks ({SOURCE}). "
    )
    kinds = rarity.shapes(study.headline)
    told = ", ".join(f"{shape}: {asked}" for asked, shape in kinds.items())
    asked = f"{told[0].upper()}{told[1:]}. " if 1 < len(kinds) == len(set(kinds.values())) else ""
    note = (
        "Full: this output, with 95 % intervals of both (the bracket where an onset has no "
        f"interval). {published if rarity.has_words(study.headline) else ''}{asked}Triangle up: "
        "not reached by the run's last step. Triangle down: reached at its first, a step that no "
        "log axis holds. Triangle at the left edge: no hit at the base, drawn at the upper bound."
    )
    return join([_large(look.dressed(chart, padding=4), "rarity", says), _note(note)])


def of_honesty(study: Study, drawn: Sequence[Panel]) -> Html:
    chart = honesty.chart(drawn, study.proxy, study.true, study.threshold) if study.true else None
    if chart is None or study.true is None:
        return _absent(
            "Absent: no truth was measured here (the task has none, or the rates come from a CSV), "
            "so what the policy lost on the way is not known."
        )
    says = (
        f"{study.true} against {study.proxy}, a trail a run from its first checkpoint to its last"
    )
    return join(
        [
            _large(look.dressed(chart, padding=4), "honesty", says),
            _note(
                "One trail a run: hollow where training began, full where it ended. To the right: "
                "the hack is paid more often. Down: fewer answers are right."
            ),
        ]
    )


def of_searched(searched: Sequence[Searched]) -> Html:
    rows = [
        {
            "run": one.run,
            "evaluated": f"{len(one.steps):,} of {one.saved:,}",
            "missed below": one.blind,
            "state": "done" if one.is_over else "goes on",
            "steps": ", ".join(map(str, one.steps)) or "none",
        }
        for one in searched
    ]
    note = (
        "The sweep was adaptive: it evaluated the checkpoints that tell each first crossing alone. "
        "Missed below: an excursion over the threshold, or under it, of fewer steps than that may "
        "have been missed. Equal weights are asked once, however many checkpoints hold them. "
        "A full sweep takes over what is there."
    )
    caption = "Checkpoints that were evaluated, of those that are saved."
    return join([table("searched", caption, list(rows[0]), rows, dense=True), _note(note)])


def of_judges(judged: Sequence[str]) -> Html:
    note = (
        "Alpha is Krippendorff's, over the votes on each rollout, with its 95 % interval over "
        "prompts: 1 where they always agree, 0 where they agree as chance would have it."
    )
    return join([element("ul", *(element("li", text(said)) for said in judged)), _note(note)])


def of_losses(study: Study) -> Html:
    parts = []
    if study.losses is None:
        parts.append(_absent("Absent: a CSV does not say which rollouts were lost."))
    elif study.losses.is_empty():
        parts.append(element("p", text("No rollout was lost.")))
    else:
        columns = ["run", "reason", "rollouts", "checkpoints"]
        rows = study.losses.rename({"null_reason": "reason"}).iter_rows(named=True)
        caption = "Rollouts without a score, by reason: nulls, never zeros."
        parts.append(table("nulls", caption, columns, rows))
    refused = nulls.refusals(study.curves)
    more = [f"{len(refused) - REFUSALS} more"] if len(refused) > REFUSALS else []
    lines = [element("li", text(said)) for said in [*refused[:REFUSALS], *more]]
    if lines:
        parts += [element("h3", text("Rates that are not shown")), element("ul", *lines)]
    if study.gaps:
        lines = [element("li", text(said)) for said in study.gaps]
        parts += [element("h3", text("What is not there")), element("ul", *lines)]
    return join(parts)


def of_runs(study: Study, drawn: Sequence[Panel]) -> Html:
    said = []
    for i, panel in enumerate(drawn):
        key = tuple(panel.row[name] for name in ("run", *study.identity))
        shown = None if study.examples is None else study.examples.get(key, [])
        said.append(
            runs.section(i, panel, study.proxy, study.true, shown, is_open=len(drawn) <= OPEN)
        )
    said = [element("div", *said, class_="few" if len(drawn) <= MANY else "runs")]
    if study.examples is None:
        said.insert(0, _absent("Absent: a CSV holds no rollouts, so there are none to read."))
    return join(said)


def of_provenance(known: Provenance | None) -> Html:
    if known is None:
        return _absent("Absent: a CSV does not say how its rates were measured.")
    facts = table(
        "facts",
        f"Read from {known.footers:,} of {known.partitions:,} partitions.",
        ["fact", "value"],
        [{"fact": name, "value": value} for name, value in known.facts],
    )
    config = (
        element("pre", _lines(known.config), tabindex=0)
        if known.config
        else _absent("Absent: the output holds no config.toml.")
    )
    return join(
        [
            element("h3", text("To make it again")),
            element("pre", _lines("\n".join(known.commands)), tabindex=0),
            _note(
                "Paths without a leading slash hold in the folder where the sweep was started. "
                "The rows are made again, the checkpoints are not: they are read from where the "
                "configuration below has them."
            ),
            element("h3", text("What was run")),
            element("div", facts, class_="facts"),
            element("h3", text("Configuration")),
            config,
        ]
    )


def _lines(said: str) -> Html:
    """Lines as they stand."""
    return join(Html(text(line) + "\n") for line in said.splitlines())


def _note(said: str) -> Html:
    return element("p", text(said), class_="note")


def _absent(said: str) -> Html:
    return element("p", text(said), class_="absent")
