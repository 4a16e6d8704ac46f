"""One file an inference engine; the role they play and how one is found."""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from hackbait.environment import Case
from pipeline.records import TOO_LONG, Checkpoint, Completion, Sampling


class Engine(Protocol):
    """A live model that takes one checkpoint after the other.

    An engine module has `build(**options) -> Engine`; its options are the TOML's `[engine]`, and
    its docstring has a line `option: meaning` for each. `ROWS` names those that change rows, by the
    null reason of the rows that they change, or None where they change any.
    """

    determinism: str
    """What equal seeds promise: `exact`, `text` (same text alone or batched), `none`."""

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """Read the checkpoint that is likely next; runs in a thread beside `generate`.

        Raises CheckpointError or OSError, which `load` will raise again in its turn.
        """
        ...

    def load(self, checkpoint: Checkpoint) -> str:
        """Put the checkpoint's weights in place; the fingerprint of the bytes that were loaded.

        Raises CheckpointError when the checkpoint cannot be used; the engine stays usable.
        """
        ...

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """Completions [case][sample], `seeds[case][sample]` deciding each one alone."""
        ...


Item = tuple[Checkpoint, Sequence[Case], Sequence[Sequence[int]]]
"""What one checkpoint is asked: cases, and seeds [case][sample]."""


class ManyAtOnce(Engine, Protocol):
    """An engine that answers for several adapters in one batch."""

    def generate_many(
        self, items: Sequence[Item], sampling: Sampling
    ) -> list[list[list[Completion]]]:
        """Completions [item][case][sample]. Each checkpoint was loaded before, one by one."""
        ...


@runtime_checkable
class SelfChecking(Protocol):
    """An engine that can tell whether it swaps weights rightly at all."""

    def self_check(self, checkpoint: Checkpoint) -> str | None:
        """Compare the checkpoint, swapped in, with a fresh engine; why not, where it was not.

        Raises EngineDied when they differ. The checkpoint is in place afterwards.
        """
        ...


class EngineError(ValueError):
    """No engine can be built as asked; the message says why and what to do."""


def names() -> list[str]:
    """Engines by file name."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


class EngineDied(RuntimeError):
    """A live engine answers no more: its weights cannot be trusted. A new process can go on."""


class EngineBusy(RuntimeError):
    """No answer after every retry, for a reason that passes: the work is owed, the engine sound."""


class AnotherArchitecture(RuntimeError):
    """The checkpoint needs an engine of another shape than the live one: a new process's task."""


def check(name: str) -> None:
    """Raise EngineError, with the near miss, when no file has that name."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise EngineError(f"engine {name!r} is none of {', '.join(names())}{hint}")


def load(name: str, options: Mapping[str, Any]) -> Engine:
    """Build the engine of the file of that name. Raises EngineError."""
    check_options(name, options)
    return cast(Engine, _module(name).build(**options))


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise EngineError for an option that the engine's `build` does not take, or lacks.

    Or that is of another type than it says there.
    """
    taken = inspect.signature(_module(name).build).parameters
    for option in options:
        if option not in taken:
            raise EngineError(f"engine {name!r} has no option {option!r}, only {', '.join(taken)}")
    for option, parameter in taken.items():
        if parameter.default is parameter.empty and option not in options:
            raise EngineError(f"engine {name!r} needs the option {option!r}")
        if option in options and parameter.annotation is not parameter.empty:
            _check_type(name, option, options[option], parameter.annotation)


def _check_type(name: str, option: str, value: Any, wanted: Any) -> None:
    from pydantic import TypeAdapter, ValidationError  # where no option is given, none is needed

    try:
        TypeAdapter(wanted).validate_python(value, strict=True)
    except ValidationError:
        said = wanted.__name__ if isinstance(wanted, type) else str(wanted)
        raise EngineError(f"engine {name!r}: {option} is {said}, not {value!r:.60}") from None


def options_of(name: str) -> list[str]:
    """Names of the options that the engine's `build` takes."""
    return list(inspect.signature(_module(name).build).parameters)


def changing(name: str) -> Mapping[str, str | None]:
    """The engine's options that change rows, with the null reason of those rows; None for any."""
    return cast(Mapping[str, str | None], getattr(_module(name), "ROWS", {}))


def of_rows(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What options that change rows are set to, here or by default."""
    taken = inspect.signature(_module(name).build).parameters
    return {option: options.get(option, taken[option].default) for option in changing(name)}


def check_room(name: str, options: Mapping[str, Any], sampling: Sampling) -> None:
    """Raise EngineError where an option leaves no prompt room for a completion."""
    for option, reason in changing(name).items():
        limit = options.get(option)
        if reason == TOO_LONG and limit is not None and sampling.max_tokens >= limit:
            raise EngineError(
                f"engine {name!r}: {option} {limit} holds no prompt beside sampling.max_tokens "
                f"{sampling.max_tokens}, so that every rollout would be {TOO_LONG}; raise the one "
                "or lower the other"
            )


def together(name: str, options: Mapping[str, Any]) -> int:
    """Adapters that one batch of the engine may hold; 1 for engines that take one by one."""
    count = getattr(_module(name), "together", None)
    return 1 if count is None else int(count(**options))


def builder(name: str) -> Callable[..., Any]:
    """The `build` of the engine of that name. Raises EngineError where there is none."""
    build: Callable[..., Any] = _module(name).build
    return build


def _module(name: str) -> Any:
    check(name)
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise EngineError(
            f"engine {name!r} needs {error.name}: pip install 'hackbait-onset[{name}]'"
        ) from error
