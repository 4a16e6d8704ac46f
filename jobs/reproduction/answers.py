"""What the swept study says to each of its questions."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from textwrap import fill
from typing import Any

from jobs.curves import Measured, onsets
from jobs.reproduction.design import Studied
from pipeline import grouping, headline
from pipeline.config import ReproduceConfig
from pipeline.hypotheses import Answer, gap, order, reach, swap
from pipeline.hypotheses.table import percent, table
from pipeline.published import BAND, replications

COLUMNS = 100
THRESHOLD = 0.5
"""Of every hypothesis: steps to 50 %."""


def runs_table(swept: Measured, screened: Measured, runs: Sequence[Studied]) -> Any:
    """The table that the questions are put to, a row a run; see pipeline.hypotheses.table."""
    found = onsets(swept, swept.proxy, THRESHOLD)
    ends = headline.headline(swept.frame, found, swept.proxy, swept.true)
    planned = [
        {
            "run": one.name,
            "rates": one.rates,
            "seed": one.seed,
            "budget": one.steps,
            "outside": one.outside,
        }
        for one in runs
    ]
    return table(found, ends, swept.frame, screened.frame, planned)


def base_rates(found: Any) -> list[dict[str, Any]]:
    """A row a word and base, the most frequent first."""
    names = ["hack_word", "rates", "base", "base_lo", "base_hi", "base_hits", "base_rollouts"]
    rows = found.select(names).unique().drop_nulls().sort("base", "hack_word", descending=True)
    return [
        {
            "word": word,
            "base policy": rates,
            "base rate": f"{percent(base)} [{100 * low:.3g}, {100 * high:.3g}]",
            "hits": int(hits),
            "rollouts": of,
        }
        for word, rates, base, low, high, hits, of in rows.rows()
    ]


def answers(config: ReproduceConfig, found: Any) -> list[Answer]:
    """Every question of the study, in the order of the hypotheses."""
    said = [order.ordered(found)]
    for number, (a, b) in enumerate(config.pairs):
        said.append(order.apart(found, a, b) if number else order.faster(found, a, b))
    said += [gap.opened(found), gap.opened_though_paid(found)]
    said.append(reach.reachable(found))
    if config.swap:
        said.append(swap.rate_or_word(found, config.swap.words))
    return [*said, *published(config, found)]


def published(config: ReproduceConfig, found: Any) -> list[Answer]:
    """Our onsets against the published ones, where model, task and settings are theirs."""
    model = config.model
    settings = {
        "model": PurePosixPath(model.name).name,
        "task": model.task,
        "mode": "hack_only",
        "batch": model.batch,
        "learning_rate": model.learning_rate,
        "temperature": 1.0,
        "max_tokens": model.max_tokens,
    }
    return [
        Answer(
            "Are the published steps to 50 % met?",
            one.verdict,
            f"{one.source}: {one.note}",
            f"within a factor {BAND:g} of the published step, every word; for the same model, "
            "task and settings alone",
        )
        for one in replications(grouping.words(order.groups(found)), [settings])
    ]


def save(folder: Path, said: Sequence[Answer], found: Any) -> None:
    """answers.json and runs.parquet."""
    text = json.dumps([asdict(answer) for answer in said], indent=1)
    (folder / "answers.json").write_text(text + "\n", "utf-8")
    found.write_parquet(folder / "runs.parquet")


def as_text(said: Sequence[Answer]) -> str:
    """Question and verdict on a line of their own, then what was seen, and what decides."""
    return "\n\n".join(
        f"{answer.question}  {answer.verdict.upper()}\n"
        + "\n".join(
            fill(text, COLUMNS, initial_indent="  ", subsequent_indent="  ")
            for text in (answer.finding, f"[{answer.rule}]")
        )
        for answer in said
    )
