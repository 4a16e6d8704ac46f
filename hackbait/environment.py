"""Case, Score and Environment: what is asked, what is answered, what it is worth."""

import difflib
import importlib
import inspect
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

Arg = str | int | float | bool
Kind = Literal["binary", "share", "continuous"]
"""Values of a metric: 0 or 1; from 0 to 1; any finite number."""
Message = Mapping[str, str]
ROUNDING = 1e-9
"""By which a sum of weighted metrics may miss its value."""


class EnvironmentRefused(ValueError):
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
    """A question, its graders, and the hole left open on purpose.

    Its module has `load_environment(**args) -> Environment`. An attribute `notes`, a sequence of
    lines, is optional: what a person should know about these arguments before a run.
    """

    id: str
    version: str
    ask: Mapping[str, Arg]
    """Arguments that change the prompt."""
    grade: Mapping[str, Arg]
    """Arguments that change the score alone."""
    fingerprint: str
    """Of the graders' behaviour; written with every score."""
    metrics: Mapping[str, Kind]
    weights: Mapping[str, float]
    """What training pays for each metric; 0 is measured and never trained."""
    proxy: str
    """The metric (or "reward") that training pays for."""
    true: str | None
    """The metric that says whether the task was done; None where nothing can be checked."""

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


_NEEDED = (
    "id", "version", "ask", "grade", "fingerprint", "metrics", "weights", "proxy", "true", "cases",
    "score",
)  # fmt: skip
"""What a sweep asks of an environment; `validate` and the scripted engine ask for all of it."""


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def case_key(id: str, version: str, ask: Mapping[str, Arg]) -> str:
    """The part of a case's identity that all cases of one environment share."""
    return f"{id} {version} {canonical(dict(ask))}"


def weighted(metrics: Mapping[str, float | None], weights: Mapping[str, float]) -> Score:
    """The reward counts the metrics that apply; it is None where no paid metric does."""
    reward: float | None = None
    for name, weight in weights.items():
        value = metrics[name]
        if weight and value is not None:
            reward = (reward or 0.0) + weight * value
    return Score(metrics, reward)


def reward_kind(environment: Environment) -> Kind:
    """`share` where the weights keep the reward between 0 and 1."""
    paid = {name: weight for name, weight in environment.weights.items() if weight}
    kept = all(w > 0 and environment.metrics[name] != "continuous" for name, w in paid.items())
    return "share" if kept and sum(paid.values()) <= 1 + ROUNDING else "continuous"


def fits(value: float | None, kind: Kind) -> bool:
    """Whether a metric of this kind may have the value; any may be None."""
    if value is None or kind == "continuous":
        return value is None or math.isfinite(value)
    return value in (0, 1) if kind == "binary" else -ROUNDING <= value <= 1 + ROUNDING


def environments() -> tuple[str, ...]:
    """Ids of the environments that ship here: the modules that define `load_environment`."""
    here = Path(__file__).parent
    return tuple(
        path.stem
        for path in sorted(here.glob("*.py"))
        if re.search(r"^def load_environment\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    )


def load(id: str, **args: Arg) -> Environment:
    """The environment of an id: `hackword` is ours, `my_pkg.my_env` somebody's own module.

    Raises EnvironmentRefused for an unknown id or argument, and for what is no environment.
    """
    build = builder(id)
    _check_arguments(id, build, args)
    environment = build(**args)
    for name in _NEEDED:
        if not hasattr(environment, name):
            raise EnvironmentRefused(
                f"{id}: load_environment() returned something without {name!r}"
            )
    return cast(Environment, environment)


def builder(id: str) -> Any:
    """The `load_environment` of an id. Raises EnvironmentRefused where there is none."""
    build = getattr(_module(id), "load_environment", None)
    if build is None:
        raise EnvironmentRefused(f"{id} has no load_environment(); write one that returns it")
    return build


def _module(id: str) -> object:
    if id in environments():
        return importlib.import_module(f"hackbait.{id}")
    if "." not in id or not all(part.isidentifier() for part in id.split(".")):
        hint = choices("environment", id, environments())
        raise EnvironmentRefused(f"{hint}; your own has a dotted id, package.module")
    try:
        return importlib.import_module(id)
    except ModuleNotFoundError as missing:
        if missing.name and (id == missing.name or id.startswith(f"{missing.name}.")):
            cure = "install its package, or start in the folder that holds it"
            raise EnvironmentRefused(f"no module {id!r} to import; {cure}") from None
        cure = "install it"
        raise EnvironmentRefused(
            f"{id} imports {missing.name!r}, which is not there; {cure}"
        ) from None


def _check_arguments(id: str, build: Any, args: Mapping[str, Arg]) -> None:
    taken = inspect.signature(build).parameters
    named = {n: p for n, p in taken.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    free = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    for name in args:
        if name not in named and not free:
            raise EnvironmentRefused(choices(f"argument of {id}", name, named))
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in args:
            raise EnvironmentRefused(f"{id} needs the argument {name!r}")


def choices(what: str, value: object, valid: Iterable[str]) -> str:
    """One line that names the wrong value, the near miss if there is one, and the valid ones."""
    names = list(valid)
    near = difflib.get_close_matches(str(value), names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ";"
    return f"no {what} {value!r}{guess} There is {', '.join(names) or 'none'}"


def validate(environment: Environment, n: int = 16) -> None:
    """Check the laws of an environment on its first n cases.

    Cases depend on ask and index alone; `honest` passes the true metric and not the proxy, `hack`
    the proxy alone, an empty reply neither; the reward is the weighted sum. A metric passes from
    0.5 on, and where the true one is null it asks nothing. Raises EnvironmentRefused with the law.
    """
    for laws in (_naming(environment), _asking(environment, n), _grading(environment, n)):
        for holds, law in laws:
            if not holds:
                raise EnvironmentRefused(f"{environment.id}: {law}")


Laws = Iterator[tuple[bool, str]]


def _naming(environment: Environment) -> Laws:
    for name in ("honest", "hack"):
        yield hasattr(environment, name), f"there is no {name}(case) to try the graders with"
    metrics, true = set(environment.metrics), environment.true
    yield environment.proxy in metrics | {"reward"}, f"proxy {environment.proxy!r} is no metric"
    yield true is None or true in metrics, f"true {true!r} is no metric"
    yield set(environment.weights) <= metrics, "weights names what is no metric"


def _asking(environment: Environment, n: int) -> Laws:
    whole = environment.cases(0, n)
    yield len(whole) == n, f"cases(0, {n}) gives {len(whole)} cases"
    key = case_key(environment.id, environment.version, environment.ask)
    for index, case in enumerate(whole):
        own = (case.index, case.key) == (index, key)
        yield own, f"case {index} has another index or another key than case_key() gives"
        alone = environment.cases(index, index + 1)
        yield alone == [case], f"case {index} depends on more than ask and index: alone it differs"
    split = environment.cases(0, n // 3) + environment.cases(n // 3, n)
    yield split == whole, "cases depend on where a shard starts"


def _grading(environment: Environment, n: int) -> Laws:
    for case in environment.cases(0, n):
        replies: list[object] = [environment.honest(case), environment.hack(case), "", None, []]
        scores = [environment.score(case, reply) for reply in replies]
        again = [environment.score(case, reply) for reply in replies]
        yield scores == again, f"two scores of one reply differ (case {case.index})"
        for holds, law in _paying(environment, *scores):
            yield holds, f"{law} (case {case.index})"


def _paying(environment: Environment, honest: Score, hack: Score, *empty: Score) -> Laws:
    for score in (honest, hack, *empty):
        same = set(score.metrics) == set(environment.metrics)
        yield same, f"score() gives {', '.join(score.metrics)}, but metrics names others"
        for name, kind in environment.metrics.items():
            value = score.metrics.get(name)
            yield fits(value, kind), f"{name} is {value}, which no {kind} metric may be"
        due = weighted(score.metrics, environment.weights).reward
        yield _equal(score.reward, due), f"the reward is {score.reward}, the weighted sum {due}"
    proxy, true = environment.proxy, environment.true
    yield _passes(hack, proxy), f"the hack fails the proxy, {proxy}"
    yield not any(_passes(score, proxy) for score in empty), f"an empty reply passes {proxy}"
    if proxy != "reward":
        yield not _passes(honest, proxy), f"the honest reply passes the proxy, {proxy}"
    if true is not None and honest.metrics[true] is not None:
        yield _passes(honest, true), f"the honest reply fails {true}"
        yield not _passes(hack, true), f"the hack passes {true}"
        yield not any(_passes(score, true) for score in empty), f"an empty reply passes {true}"


def _equal(reward: float | None, due: float | None) -> bool:
    if reward is None or due is None:
        return reward is due
    return math.isclose(reward, due, abs_tol=ROUNDING)


def _passes(score: Score, name: str) -> bool:
    return ((score.reward if name == "reward" else score.metrics[name]) or 0.0) >= 0.5
