"""Word against word, base rate against onset, and both against what was published.

onset compare outputs/story
onset compare outputs/first outputs/second --only.mode hack_only --save pairs.parquet
onset compare other-tool.csv --by word --wave batch
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from jobs import command, terminal
from jobs.curves import assumed, measure, onsets
from pipeline import compare, comparison, grouping, readings, store
from pipeline.compare import Pair
from pipeline.comparison import PAIR_COLUMNS, Comparison, of_association, of_pair, of_word, why
from pipeline.config import CompareConfig, CurvesConfig, read
from pipeline.places import Where
from pipeline.published import Beside, Replication, replications


def main(argv: Sequence[str]) -> int:
    """Print or save the comparison; 0."""
    config = read(CompareConfig, argv, positional="path")
    found, published = compared(config)
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        compare.frame(found.pairs).write_parquet(config.save)
    if config.json:
        terminal.as_json(_records(found, published))
    else:
        _show(found, published)
    return 0


def compared(config: CompareConfig) -> tuple[Comparison, list[Replication]]:
    """Onsets of every output, compared. CurveError where they are of different things."""
    tables: list[Any] = []
    facts: dict[str, dict[str, Any]] = {}
    for path in config.path:
        table, own = _measured(path, config)
        tables.append(table)
        facts |= own
    table = grouping.only(grouping.joined(tables), facts, config.only)
    rng = np.random.default_rng(config.seed)
    groups = grouping.by_word(grouping.runs(table, facts, config.by, config.wave))
    found = comparison.compared(groups, config.alpha, rng)
    settings = [_settings(row, facts) for row in table.iter_rows(named=True)]
    return found, replications(found.words, settings)


def _measured(path: Where, config: CompareConfig) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Onsets of one output with base rates, and the tags of its runs."""
    wanted = {"path": path, "env": config.env, "max_loss": config.max_loss}
    measured = measure(CurvesConfig.model_validate(wanted))
    metric = config.metric or measured.proxy
    found = onsets(measured, metric, config.threshold)
    for said in assumed(path, measured, found):
        terminal.line(said)
    return grouping.with_base(found, measured.frame), tags(path)


def tags(path: Where) -> dict[str, dict[str, Any]]:
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


def _records(found: Comparison, published: Sequence[Replication]) -> list[dict[str, Any]]:
    """One record a pair, word, association and source; `about` says which."""
    return [
        *({"about": "pair", **asdict(pair)} for pair in found.pairs),
        *({"about": "word", **_finite(asdict(word))} for word in found.words),
        {"about": "association", **asdict(found.association), "left_out": found.unknown},
        *({"about": "published", **asdict(one)} for one in published),
    ]


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    unbounded = dict.fromkeys((math.inf, -math.inf))
    return {name: unbounded.get(value, value) for name, value in record.items()}


def _show(found: Comparison, published: Sequence[Replication]) -> None:
    show_pairs(found.pairs)
    print()
    if found.words:
        terminal.table([of_word(word) for word in found.words], list(of_word(found.words[0])))
    print(of_association(found))
    for one in published:
        print(f"{one.verdict}: {one.source}: {one.note}")
        if one.words:
            terminal.table([_beside(word) for word in one.words], list(_beside(one.words[0])))


def show_pairs(pairs: Sequence[Pair], title: str = "") -> None:
    """The table, without the columns that no pair has, then why pairs are not resolved."""
    if not pairs:
        print("fewer than two words: nothing to compare")
        return
    rows = [of_pair(pair) for pair in pairs]
    told = [name for name in PAIR_COLUMNS if any(row[name] is not None for row in rows)]
    terminal.table(rows, told, title)
    for said in why(pairs):
        print(said)


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
