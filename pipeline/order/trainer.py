"""Where the trainer's own log of rewards crosses a threshold: a first guess, and no more."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipeline.checkpoints.headers import read_json
from pipeline.places import is_address
from pipeline.records import CheckpointError

STATE = "trainer_state.json"
"""What transformers' and TRL's trainers leave in each checkpoint."""
LIMIT = 1e9
"""A reward is smaller; NaN and what no float holds are none."""


def hint(checkpoint: str, metric: str, threshold: float) -> float | None:
    """Step at which the log in a checkpoint's folder, or in the run's, first says it was crossed.

    None where there is no log, none that can be read, or no crossing in it; object stores are not
    asked.
    """
    if is_address(checkpoint):
        return None
    for folder in (Path(checkpoint), Path(checkpoint).parent):
        try:
            points = rewards(read_json(folder / STATE), metric)
        except CheckpointError:
            continue
        if points:
            return crossing(points, threshold)
    return None


def rewards(state: dict[str, Any], metric: str) -> list[tuple[int, float]]:
    """Step and mean of the metric, ascending; of the whole reward where nothing is called so."""
    log = state.get("log_history")
    entries = [entry for entry in log if isinstance(entry, dict)] if isinstance(log, list) else []
    for name in (f"rewards/{metric}/mean", "reward"):
        found = {
            e["step"]: e[name] for e in entries if _is_step(e.get("step")) and _is_rate(e.get(name))
        }
        if found:
            return sorted(found.items())
    return []


def crossing(points: Iterable[tuple[int, float]], threshold: float) -> float | None:
    """Where the log first reaches the threshold for two entries in turn, read linearly."""
    log = list(points)
    for i, ((step, rate), (_, following)) in enumerate(pairwise(log)):
        if min(rate, following) >= threshold:
            before, low = log[i - 1] if i else (step, rate)
            share = (threshold - low) / (rate - low) if low < threshold else 1.0
            return before + share * (step - before)
    return None


def _is_step(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and abs(value) < LIMIT
