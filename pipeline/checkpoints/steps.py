"""Step patterns: which of a run's steps are meant."""

import re
from collections.abc import Sequence

from pipeline.checkpoints.folder import LayoutError

SHOWN = 12
CHARACTERS = 4_000
RANGE = re.compile(r"([0-9]*):([0-9]*)(?::([0-9]*[1-9][0-9]*))?")


def select(pattern: str, steps: Sequence[int]) -> list[int]:
    """The steps that a pattern means, ascending.

    Parts are separated by commas: `all`, `last`, a step, or `start:stop:stride` with the stop
    included and the stride counted from the start; start, stop and stride may be left out.
    Raises LayoutError for a part that cannot be read or matches nothing.
    """
    have = sorted(set(steps))
    chosen: set[int] = set()
    if len(pattern) > CHARACTERS:
        raise LayoutError(f"steps of {len(pattern):,} characters; {CHARACTERS:,} at most")
    for part in pattern.split(","):
        matched = _match(part.strip(), have, pattern)
        if not matched:
            raise LayoutError(f"steps = {pattern!r}: {part.strip()} matches none; {_listed(have)}")
        chosen.update(matched)
    return sorted(chosen)


def _match(part: str, have: Sequence[int], pattern: str) -> Sequence[int]:
    if part == "all":
        return have
    if part == "last":
        return have[-1:]
    if re.fullmatch("[0-9]+", part):
        return [step for step in have if step == int(part)]
    bounds = RANGE.fullmatch(part)
    if bounds is None:
        raise LayoutError(
            f'steps = {pattern!r} cannot be read; write "0:100:2" (stop included), "0,5,10", '
            '"last" or "all"'
        )
    start, stop, stride = (int(text) if text else None for text in bounds.groups())
    return [
        step
        for step in have
        if step >= (start or 0)
        and (stop is None or step <= stop)
        and (step - (start or 0)) % (stride or 1) == 0
    ]


def _listed(have: Sequence[int]) -> str:
    if not have:
        return "there are no whole checkpoints"
    shown = [str(step) for step in have]
    if len(shown) > SHOWN:
        shown = [*shown[: SHOWN - 2], "...", shown[-1]]
    return f"there are {', '.join(shown)}"
