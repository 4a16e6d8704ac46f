"""Arguments of an environment, filled with the facts of a run: `hack_word = "{word}"`."""

import math
import string

from hackbait.environment import Arg
from pipeline.config import EnvironmentBlock
from pipeline.printable import is_text, short
from pipeline.records import PlanError
from pipeline.runs import Run

ARGUMENT_CHARACTERS = 10_000


def resolve(block: EnvironmentBlock, run: Run) -> tuple[tuple[str, Arg], ...]:
    """The block's arguments with `{tag}` replaced by the run's facts."""
    filled = [(name, _fill(name, value, run)) for name, value in sorted(block.args.items())]
    for name, value in filled:
        _check_argument(name, value)
    return tuple(filled)


def _check_argument(name: str, value: object) -> None:
    """PlanError for what no column of a row can hold."""
    text = isinstance(value, str) and is_text(value) and len(value) <= ARGUMENT_CHARACTERS
    number = isinstance(value, float) and math.isfinite(value)
    whole = isinstance(value, int) and -(2**63) <= value < 2**63
    if not (text or number or whole):
        raise PlanError(
            f"env: {name} = {short(value)} is no text, truth value or number of 64 bits"
        )


def _fill(name: str, value: Arg, run: Run) -> Arg:
    if not isinstance(value, str) or "{" not in value:
        return value
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as error:
        raise PlanError(f"env: {name} = {short(value)}: {error}; write {{tag}}") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise PlanError(f"env: {name} = {short(value)}: write {{tag}}, without a format")
    fields = [field for _, field, _, _ in parts if field]
    missing = [field for field in fields if field not in run.tags]
    if missing:
        raise PlanError(
            f"env: {name} = {value!r} needs tag {missing[0]!r} of run {run.name!r}, which has "
            f"{sorted(run.tags) or 'none'}; write [runs.tags] {missing[0]} = ..."
        )
    alone = value == "{" + fields[0] + "}" if fields else False
    return run.tags[fields[0]] if alone else value.format_map(run.tags)
