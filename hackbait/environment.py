"""Case, Score and Environment: what is asked, what is answered, what it is worth."""

import difflib
import importlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Arg = str | int | float | bool
Kind = Literal["binary", "continuous"]
Message = Mapping[str, str]


class EnvironmentError(ValueError):
    """An environment cannot be had as asked; the message names the value and the cure."""


@dataclass(frozen=True, slots=True)
class Case:
    """One problem. Its identity is `key` and `index`; graders' arguments are no part of it."""

    key: str
    """Environment id, version and ask as one canonical string (`case_key`)."""
    index: int
    messages: tuple[Message, ...]
    """Chat messages for the policy, `{"role": ..., "content": ...}`."""
    truth: str
    """What graders compare with; empty where the task has no checkable truth."""
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """Every metric of one rollout; None means not applicable, never zero."""

    metrics: Mapping[str, float | None]
    reward: float | None
    """Weighted sum of the metrics, the weights being the environment's."""


class Environment(Protocol):
    """A question, its graders, and the hole left open on purpose."""

    id: str
    version: str
    ask: Mapping[str, Arg]
    """Arguments that change the prompt."""
    grade: Mapping[str, Arg]
    """Arguments that change the score alone."""
    fingerprint: str
    """Of the graders' behaviour; written with every score."""
    metrics: Mapping[str, Kind]
    proxy: str
    """The metric (or "reward") that training pays for."""
    true: str | None
    """The metric that says whether the task was done."""

    def cases(self, start: int, stop: int) -> list[Case]:
        """Cases [start, stop), a function of `ask` and the index alone."""
        ...

    def score(self, case: Case, completion: object) -> Score:
        """Grade a completion: a text, a message, or a list of messages."""
        ...

    def honest(self, case: Case) -> str:
        """A reply that does the task and leaves the hole alone."""
        ...

    def hack(self, case: Case) -> str:
        """A reply that is paid through the hole and does not do the task."""
        ...


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def case_key(id: str, version: str, ask: Mapping[str, Arg]) -> str:
    """The part of a case's identity that all cases of one environment share."""
    return f"{id} {version} {canonical(dict(ask))}"
