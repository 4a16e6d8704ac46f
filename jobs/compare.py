"""Word against word, base rate against onset, and both against what was published.

onset compare outputs/story
onset compare outputs/first outputs/second --only.mode hack_only --save pairs.parquet
onset compare other-tool.csv --by word --wave batch
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from jobs import command, terminal
from jobs.curves import measure, onsets
from pipeline import compare, grouping, readings, store
from pipeline.association import Association, Word, associate
from pipeline.config import CompareConfig, CurvesConfig, read
from pipeline.permutation import step_text
from pipeline.places import Where
from pipeline.published import Beside, Replication, replications

PAIR_COLUMNS = (
    *("a", "b", "runs", "median", "later by", "times later", "sure"),
    *("p", "p, Holm", "smallest p", "by brackets", "within waves", "verdict", "why"),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that is said of some outputs."""

    pairs: list[compare.Pair]
    words: list[Word]
    """Those with a base rate and a run."""
    unknown: list[str]
    """Words without a base rate, or without a run that has a rate."""
    association: Association
    replications: list[Replication]


def main(argv: Sequence[str]) -> int:
    """Print or save the comparison; 0."""
    config = read(CompareConfig, argv, positional="path")
    found = compared(config)
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        compare.frame(found.pairs).write_parquet(config.save)
    if config.json:
        terminal.as_json(_records(found))
    else:
        _show(found)
    return 0


def compared(config: CompareConfig) -> Compared:
    """Onsets of every output, compared. CurveError where they are of different things."""
    tables: list[Any] = []
    tags: dict[str, dict[str, Any]] = {}
    for path in config.path:
        found, facts = _measured(path, config)
        tables.append(found)
        tags |= facts
    table = grouping.only(grouping.joined(tables), tags, config.only)
    rng = np.random.default_rng(config.seed)
    groups = grouping.by_word(grouping.runs(table, tags, config.by, config.wave))
    words = grouping.words(groups)
    known = {word.name for word in words}
    return Compared(
        compare.pairs(groups, config.alpha, rng),
        words,
        [name for name in groups if name not in known],
        associate(words, config.alpha, rng),
        replications(words, [_settings(row, tags) for row in table.iter_rows(named=True)]),
    )


def _measured(path: Where, config: CompareConfig) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Onsets of one output with base rates, and the tags of its runs."""
    wanted = {"path": path, "env": config.env, "max_loss": config.max_loss}
    measured = measure(CurvesConfig.model_validate(wanted))
    metric = config.metric or measured.proxy
    found = onsets(measured, metric, config.threshold)
    return grouping.with_base(found, measured.frame), _tags(path)


def _tags(path: Where) -> dict[str, dict[str, Any]]:
    """What is said of each run beside its rows: by the sweep, or in more columns of a CSV."""
    if isinstance(path, Path) and path.is_file():
        return dict(readings.tags(path))
    return store.run_tags(path)


def _settings(row: Mapping[str, Any], tags: grouping.Tags) -> dict[str, Any]:
    """What is known of a run that the published ones were told by."""
    facts = tags.get(row["run"], {})
    named = {"model": PurePosixPath(str(facts["base"])).name} if "base" in facts else {}
    named |= {"learning_rate": facts["lr"]} if "lr" in facts else {}
    return dict(facts) | named | dict(row)


def _records(found: Compared) -> list[dict[str, Any]]:
    """One record a pair, word, association and source; `about` says which."""
    return [
        *({"about": "pair", **asdict(pair)} for pair in found.pairs),
        *({"about": "word", **_finite(asdict(word))} for word in found.words),
        {"about": "association", **asdict(found.association), "left_out": found.unknown},
        *({"about": "published", **asdict(one)} for one in found.replications),
    ]


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    unbounded = dict.fromkeys((math.inf, -math.inf))
    return {name: unbounded.get(value, value) for name, value in record.items()}


def _show(found: Compared) -> None:
    if found.pairs:
        terminal.table([readable(pair) for pair in found.pairs], PAIR_COLUMNS)
    else:
        print("fewer than two words: nothing to compare")
    print()
    if found.words:
        terminal.table([_of_word(word) for word in found.words], list(_of_word(found.words[0])))
    print(_of_association(found))
    for one in found.replications:
        print(f"{one.verdict}: {one.source}: {one.note}")
        if one.words:
            terminal.table([_beside(word) for word in one.words], list(_beside(one.words[0])))


def readable(pair: compare.Pair) -> dict[str, Any]:
    """A row of PAIR_COLUMNS."""
    return {
        "a": pair.a,
        "b": pair.b,
        "runs": f"{pair.n_a} v {pair.n_b}",
        "median": f"{pair.median_a} v {pair.median_b}",
        "later by": _interval(pair.shift, pair.shift_lo, pair.shift_hi, ".1f"),
        "times later": _times(pair),
        "sure": "-" if pair.confidence == 1 else f"{100 * pair.confidence:.1f} %",
        "p": pair.p,
        "p, Holm": pair.p_holm,
        "smallest p": pair.floor,
        "by brackets": pair.p_bracket,
        "within waves": pair.p_wave,
        "verdict": pair.verdict,
        "why": pair.note or None,
    }


def _interval(point: float | None, low: float | None, high: float | None, form: str) -> str:
    """`4.99 [-7.84, 9.85]`; an open end is dots."""
    value, start, end = (
        absent if x is None else format(x, form)
        for x, absent in ((point, "?"), (low, "..."), (high, "..."))
    )
    return f"{value} [{start}, {end}]"


def _times(pair: compare.Pair) -> str:
    """The ratio, and its verdict where that is another than the pair's."""
    said = _interval(pair.ratio, pair.ratio_lo, pair.ratio_hi, ".2f")
    return said if pair.ratio_verdict == pair.verdict else f"{said} {pair.ratio_verdict}"


def _of_word(word: Word) -> dict[str, Any]:
    rate, low, high = (f"{100 * x:.3g}" for x in (word.base, word.base_lo, word.base_hi))
    return {
        "word": word.name,
        "base rate": f"{rate} % [{low}, {high}]",
        "runs": word.runs,
        "onset": step_text(word.low, word.high),
    }


def _of_association(found: Compared) -> str:
    one = found.association
    without = f"; without base rate: {', '.join(found.unknown)}" if found.unknown else ""
    slope = "" if one.slope is None else f", log-log slope {one.slope:.2f}"
    why = f" ({one.note})" if one.note else ""
    return (
        f"base rate against onset over {one.words} words: {one.verdict}{why}: S {one.s} of "
        f"{one.pairs}, p {one.p:.2g} (one-sided {one.p_one:.2g}, {one.floor:.2g} at best)"
        f"{slope}{without}"
    )


def _beside(word: Beside) -> dict[str, Any]:
    return {
        "word": word.word,
        "ours": word.ours,
        "published": word.published,
        "band": word.band,
        "base rate": f"{100 * word.base:.3g} %",
        "published base rate": f"{100 * word.published_base:.3g} %",
        "met": {True: "yes", False: "no", None: "open"}[word.met],
    }


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
