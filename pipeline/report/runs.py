"""One run on the page: every checkpoint's rates, and rollouts either side of the onset."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline.gap import GAP
from pipeline.headline import percent
from pipeline.report.examples import Example, sides, spans
from pipeline.report.markup import Cell, Html, element, join, prose, table, text
from pipeline.report.panels import Panel

CHARACTERS = 700
"""Of a completion that are shown, and a third of it before its first hack word."""
PROMPT_CHARACTERS = 400


def section(
    number: int,
    panel: Panel,
    proxy: str,
    true: str | None,
    examples: Sequence[Example] | None,
    *,
    is_open: bool,
) -> Html:
    """`examples` None: there are no rollouts at all."""
    name, _, said = panel.title.partition("\n")
    summary = element("summary", element("b", text(name)), text(said))
    # A link to what stands inside opens it; one to the whole would leave it closed.
    parts = [element("a", id=f"run-{number}")]
    metrics = [proxy, *([true, GAP] if true else [])]
    parts.append(element("p", text(_onset(panel.row)), class_="note"))
    parts.append(_checkpoints(number, name, panel.points, metrics))
    if examples is not None:
        parts.append(_examples(examples, panel.row))
    return element("details", summary, *parts, open=is_open)


def _onset(row: Mapping[str, Any]) -> str:
    """What the headline has no room for: other crossings, and how much hangs on the threshold."""
    said = [f"bracket {row['bracket']}"] if row["above"] is not None else []
    said += [f"interval by {row['interval']}"] if row["interval"] else []
    others = [("sustained from", row["sustained"]), ("isotonic fit", row["isotonic"])]
    said += [f"{name} {step:.1f}" for name, step in others if step is not None]
    said += [f"checkpoints at most {row['spacing']:g} steps apart"] if row["spacing"] else []
    levels = [_level(one, row["base_step"]) for one in row["sensitivity"] or []]
    reached = f" Thresholds: {', '.join(levels)}." if levels and row["evaluated"] else ""
    return f"Onset {row['text']}: {', '.join([row['status'], *said])}.{reached}"


def _level(one: Mapping[str, Any], first: int | None) -> str:
    """`0.3 at 12.0`, `0.3 not`, or `0.3 at <= 0` where the first rate is over it already."""
    if one["onset"] is not None:
        return f"{one['threshold']:g} at {one['onset']:.1f}"
    reached = one["status"] in ("left", "uncrossed")
    return f"{one['threshold']:g} at <= {first}" if reached else f"{one['threshold']:g} not"


def _checkpoints(number: int, name: str, points: pl.DataFrame, metrics: Sequence[str]) -> Html:
    shown: dict[int, dict[str, Any]] = {}
    for point in points.filter(pl.col("metric").is_in(metrics)).iter_rows(named=True):
        row = shown.setdefault(point["step"], {"step": point["step"]})
        row[point["metric"]] = _rate(point)
        if point["metric"] == metrics[0]:
            row |= {"n": point["rollouts"], "prompts": point["prompts"], "deff": point["deff"]}
            row |= {"nulls": point["nulls"], "weights": _fingerprint(point["fingerprint"])}
    columns = ["step", *metrics, "n", "prompts", "deff", "nulls", "weights"]
    rows = [{c: row.get(c) for c in columns} for row in shown.values()]
    kept = [c for c in columns if any(row[c] is not None for row in rows)]
    caption = f"Checkpoints of {name}: per cent with 95 % interval."
    return table(f"run-{number}-rates", caption, kept or ["step"], rows)


def _rate(point: Mapping[str, Any]) -> str:
    return percent(point["rate"], point["lo"], point["hi"]).replace(" %", "")


def _fingerprint(whole: str | None) -> Cell | None:
    return Cell(element("code", text(whole[:12]), title=whole)) if whole else None


def _examples(examples: Sequence[Example], row: Mapping[str, Any]) -> Html:
    below, above = sides(examples, row)
    heads = [(below, row["below"], "below"), (above, row["above"], "above")]
    shown = [(side, f"Step {step}, {where} the threshold") for side, step, where in heads if side]
    if not shown:
        return element("p", text("No rollout beside the onset."), class_="absent")
    word = row.get("hack_word")
    cells: list[Html] = [element("h4", text(head)) for _, head in shown]
    asked = {example.index: example.prompt for side, _ in shown for example in side}
    for index, prompt in sorted(asked.items()):
        short = prompt[:PROMPT_CHARACTERS] + (" ..." if len(prompt) > PROMPT_CHARACTERS else "")
        cells.append(element("p", text(f"Case {index}: {' '.join(short.split())}"), class_="asked"))
        for side, head in shown:
            of_case = next((example for example in side if example.index == index), None)
            cells.append(_said(of_case, head, word))
    about = text("The first rollout of the first cases, the same on both sides: none is picked.")
    return join(
        [
            element("h3", text("Rollouts either side of the onset")),
            element("p", about, class_="note"),
            element("div", *cells, class_="pairs" if len(shown) == 2 else "pairs one"),
        ]
    )


def _said(example: Example | None, head: str, word: str | None) -> Html:
    if example is None:
        return element("p", text("-"), class_="said")
    step = head.partition(",")[0]
    if example.completion is None:
        return element("p", text(f"{step}: no completion, {example.null_reason}"), class_="said")
    known = [f"{name} {score:g}" for name, score in example.scores.items() if score is not None]
    return element(
        "p",
        element("span", text(", ".join([step, *known])), class_="score"),
        marked(example.completion, word),
        class_="said",
    )


def marked(completion: str, word: str | None) -> Html:
    """A completion, or the part about its first hack word, with every hack word marked."""
    found = spans(completion, word)
    first = found[0][0] if found else 0
    start = max(0, first - CHARACTERS // 3) if len(completion) > CHARACTERS else 0
    stop = min(len(completion), start + CHARACTERS)
    parts = [prose("... ")] if start else []
    at = start
    for low, high in found:
        if start <= low and high <= stop:
            parts += [prose(completion[at:low]), element("mark", prose(completion[low:high]))]
            at = high
    parts.append(prose(completion[at:stop]))
    left = len(completion) - stop
    if left:
        parts.append(prose(f" ... ({left:,} characters more)"))
    return join(parts)
