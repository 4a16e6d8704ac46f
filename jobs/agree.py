"""A column against ground truth: precision, recall, kappa, and how early it sees the onset.

onset agree outputs/demo/sweep --of r_true --against r_hack
onset agree outputs/demo/sweep --of suspicion --cut 0.8 --scores mine.parquet
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jobs import command, terminal
from jobs.curves import folder
from pipeline import agreement, frames, scores, store
from pipeline.agreement import Column
from pipeline.config import AgreeConfig, read
from pipeline.rows import CurveError

READABLE = (
    *("run", "pairs", "tp, fp, fn, tn", "prompts"),
    *("precision", "recall", "specificity", "agreement", "kappa"),
    *("rate", "truth", "onset", "onset of truth", "later by", "status"),
)


def main(argv: Sequence[str]) -> int:
    """Print or save the table; 0."""
    config = read(AgreeConfig, argv, positional="path")
    about = store.about(folder(config.path), config.env)
    column = Column(config.of, config.against or about.proxy, config.cut)
    own = scores.read(config.scores, config.of) if config.scores else None

    def look(rows: Any) -> Any:
        if own is not None:
            joined = scores.joined(rows, own, about.identity, about.environment)
            if joined.extra + joined.elsewhere == len(own):
                raise CurveError(
                    f"{config.scores}: none of its {len(own):,} scores is of a row here"
                    f"{f', as {joined.example}' if joined.example else ''}; their keys are run, "
                    "step, index and sample"
                )
            _tell(joined, config)
            rows = joined.rows
        return agreement.agreement(
            agreement.pairs(rows, column, about.identity),
            about.identity,
            about.grade,
            threshold=config.threshold,
            max_loss=config.max_loss,
        )

    found = frames.reading(config.path, about, look)
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        found.write_parquet(config.save)
    if config.json:
        terminal.as_json(found.to_dicts())
    else:
        print(f"{config.of} against {column.against}, 95 % intervals over prompts")
        differ = [n for n in about.identity if found[n].drop_nulls().n_unique() > 1]
        _show(list(found.iter_rows(named=True)), differ)
    return 0


def _show(rows: Sequence[Mapping[str, Any]], differ: Sequence[str]) -> None:
    """The rows that have pairs, or all where none has; how many runs have none."""
    held = [row for row in rows if row["pairs"]]
    without = [row["run"] for row in rows if row["run"] is not None and not row["pairs"]]
    terminal.table([_readable(row, differ) for row in held or rows], READABLE)
    if held and without:
        terminal.line(
            f"{len(without)} runs have no rollout with both and are left out, {without[0]!r} "
            "first; --json has them"
        )


def _tell(joined: scores.Joined, config: AgreeConfig) -> None:
    if joined.elsewhere:
        terminal.line(f"{config.scores}: {joined.elsewhere} scores are of another environment")
    if joined.extra:
        terminal.line(
            f"{config.scores}: {joined.extra} scores are of no row here, as {joined.example}"
        )


def _readable(row: Mapping[str, Any], differ: Sequence[str]) -> dict[str, Any]:
    named = [row["run"] if row["run"] is not None else "all runs"]
    named += [f"{name}={row[name]}" for name in differ if row[name] is not None]
    shown = ("precision", "recall", "specificity", "agreement", "kappa")
    return {
        "run": ", ".join(named),
        "pairs": row["pairs"],
        "tp, fp, fn, tn": ", ".join(f"{row[cell]:,.0f}" for cell in agreement.CELLS),
        "prompts": row["prompts"],
        **{name: _interval(row, name) for name in shown},
        "rate": _interval(row, "rate_of"),
        "truth": _interval(row, "rate_against"),
        "onset": row["onset_of"],
        "onset of truth": row["onset_against"],
        "later by": _interval(row, "delay"),
        "status": ": ".join(said for said in (row["status"], row["reason"]) if said),
    }


def _interval(row: Mapping[str, Any], name: str) -> str | None:
    """`0.931 [0.902, 0.957]`; without the brackets where there is no interval."""
    value, low, high = (row[name + end] for end in ("", "_lo", "_hi"))
    if value is None:
        return None
    return f"{value:.3g}" if low is None else f"{value:.3g} [{low:.3g}, {high:.3g}]"


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
