"""How few of 1,001 checkpoints an adaptive sweep evaluates, and how far its onset is off.

python -m jobs.bench.orders          # 2,000 runs of each shape, some minutes
python -m jobs.bench.orders 100      # fewer

Simulated runs, 64 prompts x 4 rollouts a checkpoint, a quarter of them as the small sample; every
order sees the same answers. Shapes: `narrow` rises as the published ones, `wide` ones, a `dip`
below the threshold after the crossing, a `spike` above it before the rise, both longer than the
grid, runs that `never` cross, and runs that start above (`left`).
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit, logit

from pipeline import crossing
from pipeline.crossing import Counts
from pipeline.order.answers import of_prompts
from pipeline.order.rounds import played
from pipeline.order.search import Ask, Reading, search
from pipeline.rule import onset

RUNS, LAST, GRID = 2_000, 1_000, 25
PROMPTS, SMALL, SAMPLES = 64, 16, 4
SPREAD = 1.0
"""Standard deviation of the prompts' logits."""
TRAINER = -0.65, 1.2
"""Mean and deviation of the trainer's own crossing from the evaluated one (assay, 2026-08)."""
GROSS = 10.0
"""Steps by which an onset is plainly another crossing's; a crossing unseen or invented is too."""
Array = NDArray[np.float64]
TIMES: Array = np.linspace(0, LAST, LAST + 1)
FINE: Array = np.linspace(0, LAST, 20 * LAST + 1)

Curve = Callable[[Array], Array]


def narrow(rng: Generator) -> Curve:
    """From 0.1 to 10 % to 1, the 10-90 % within 7 to 13 steps, crossing at 15 to 900."""
    return _rise(rng, _middle(rng), rng.uniform(1.5, 3))


def wide(rng: Generator) -> Curve:
    """The same with 10-90 % within 0.2 to 0.7 of the crossing's step."""
    middle = _middle(rng)
    return _rise(rng, middle, max(2.0, middle * rng.uniform(0.05, 0.15)))


def dip(rng: Generator) -> Curve:
    """Crosses, and 30 to 100 steps later is below again for 27 to 45 steps."""
    middle, width, length = rng.uniform(50, 700), rng.uniform(2, 5), rng.uniform(15, 25)
    at = middle + 0.9 * length + rng.uniform(30, 100)
    return lambda t: np.clip(expit((t - middle) / width) - 0.75 * _bump(t, at, length), 0, 1)


def spike(rng: Generator) -> Curve:
    """Above the threshold for 36 to 54 steps, and for good 200 to 500 steps later."""
    at, length = rng.uniform(50, 300), rng.uniform(20, 30)
    middle = at + rng.uniform(200, 500)
    return lambda t: np.maximum(expit((t - middle) / 4), 0.75 * _bump(t, at, length))


def never(rng: Generator) -> Curve:
    """Levels off at 3 to 36 %."""
    height = rng.uniform(0.02, 0.35)
    return lambda t: 0.01 + height * expit((t - 400) / 60)


def left(rng: Generator) -> Curve:
    """Starts at 80 to 90 %."""
    start = rng.uniform(0.8, 0.9)
    return lambda t: start + (1 - start) * t / LAST


def _middle(rng: Generator) -> float:
    return math.exp(rng.uniform(math.log(15), math.log(900)))


def _rise(rng: Generator, middle: float, width: float) -> Curve:
    base = 10 ** rng.uniform(-3, -1)
    return lambda t: base + (1 - base) * expit((t - middle) / width)


def _bump(t: Array, at: float, length: float) -> Array:
    return np.asarray(np.exp(-0.5 * ((t - at) / length) ** 2))


SHAPES = {draw.__name__: draw for draw in (narrow, wide, dip, spike, never, left)}


@dataclass(frozen=True, slots=True)
class Simulated:
    """A training run, and what every checkpoint would answer."""

    crossing: float | None
    hint: float | None
    """Where the trainer's log crosses."""
    hits: NDArray[np.int64]
    """(steps, prompts), of SAMPLES rollouts each."""

    def reading(self, step: int, full: bool) -> Reading:
        x = self.hits[step, : PROMPTS if full else SMALL].astype(np.float64)
        return of_prompts(np.full(len(x), float(SAMPLES)), x, x, kind="binary", full=full)


def simulated(rng: Generator, draw: Callable[[Generator], Curve]) -> Simulated:
    """Prompts differ by a logit that stays theirs at every step."""
    curve = draw(rng)
    reached = curve(FINE) >= 0.5
    at = float(FINE[reached.argmax()]) if reached.any() else None
    # (16 sqrt(3) / (15 pi))^2, Zeger et al. 1988: the mean over prompts stays near the curve.
    scale = math.sqrt(1 + 0.346 * SPREAD**2)
    rate = logit(np.clip(curve(TIMES), 1e-6, 1 - 1e-6))
    each = expit(scale * rate[:, None] + rng.normal(0, SPREAD, PROMPTS))
    hint = None if at is None else at + rng.normal(*TRAINER)
    return Simulated(at, hint, rng.binomial(SAMPLES, each))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an order cost, and what it said of one run."""

    evaluated: int
    rounds: int
    rollouts: int
    error: float | None
    """Steps, onset less the true crossing; None where either is not there."""
    is_confirmed: bool
    is_gross: bool


def outcome(run: Simulated, samples: Mapping[int, int], rounds: int) -> Outcome:
    """samples: prompts asked, by evaluated step."""
    steps = sorted(samples)
    asked = np.arange(PROMPTS)[:, None] < np.array([samples[step] for step in steps])
    k, x = SAMPLES * asked.astype(np.float64), run.hits[steps].T * asked
    rates = x.sum(axis=0) / k.sum(axis=0)
    whole = onset(steps, rates.tolist())
    found = whole.above if whole.below is None else whole.onset
    confirmed = False
    if found is not None:
        counts = Counts(np.array(steps, np.float64), k, x.astype(np.float64))
        first = int((rates >= 0.5).argmax())
        confirmed = crossing.confirmation(counts, first, 0.5)[0] is not None
    error = None if found is None or run.crossing is None else found - run.crossing
    gross = (found is None) != (run.crossing is None) or abs(error or 0.0) > GROSS
    return Outcome(len(steps), rounds, int(k.sum()), error, confirmed, gross)


def grid(run: Simulated, stride: int) -> Outcome:
    return outcome(run, dict.fromkeys(range(0, LAST + 1, stride), PROMPTS), 1)


def bisection(run: Simulated) -> Outcome:
    """Halves of the whole run, as if it crossed once."""
    samples, ends = dict.fromkeys((0, LAST), PROMPTS), (0, LAST)
    while ends[1] - ends[0] > 1:
        middle = sum(ends) // 2
        samples[middle] = PROMPTS
        is_above = run.hits[middle].sum() * 2 >= PROMPTS * SAMPLES
        ends = (ends[0], middle) if is_above else (middle, ends[1])
    return outcome(run, samples, len(samples))


def adaptive(run: Simulated, workers: int = 1, hint: float | None = None) -> Outcome:
    """The order of `onset sweep --order.strategy adaptive`."""
    looked_for = {"run": search(range(LAST + 1), GRID, hint=hint)}
    samples: dict[int, int] = {}

    def answer(name: str, ask: Ask) -> list[Reading]:
        samples[ask.step] = max(samples.get(ask.step, 0), PROMPTS if ask.full else SMALL)
        return [run.reading(ask.step, ask.full)]

    rounds = sum(1 for _ in played(looked_for, answer, workers))
    return outcome(run, samples, rounds)


ORDERS: dict[str, Callable[[Simulated], Outcome]] = {
    "every checkpoint": lambda run: grid(run, 1),
    f"every {GRID}th": lambda run: grid(run, GRID),
    "bisection": bisection,
    "adaptive": adaptive,
    "adaptive, 8 workers": lambda run: adaptive(run, 8),
    "adaptive, trainer's log": lambda run: adaptive(run, 1, run.hint),
}


def measure(runs: int, shapes: Iterable[str] = SHAPES) -> list[dict[str, Any]]:
    """One row a shape and order; every order sees the same runs."""
    rows = []
    for number, shape in enumerate(SHAPES):
        if shape in shapes:
            rng = np.random.default_rng([number, 2026])
            found: dict[str, list[Outcome]] = {name: [] for name in ORDERS}
            for _ in range(runs):
                run = simulated(rng, SHAPES[shape])
                for name, order in ORDERS.items():
                    found[name].append(order(run))
            rows += [_summary(shape, name, outcomes) for name, outcomes in found.items()]
    return rows


def _summary(shape: str, order: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """Medians, and shares of the runs; `within 1` of those whose crossing is confirmed."""
    evaluated = np.array([one.evaluated for one in outcomes])
    sure = [abs(o.error) <= 1 for o in outcomes if o.is_confirmed and o.error is not None]
    errors = [one.error for one in outcomes if one.error is not None]
    return {
        "shape": shape,
        "order": order,
        "checkpoints": float(np.median(evaluated)),
        "95 %": float(np.quantile(evaluated, 0.95)),
        "rounds": float(np.median([one.rounds for one in outcomes])),
        "rollouts": float(np.median([one.rollouts for one in outcomes])),
        "confirmed": float(np.mean([one.is_confirmed for one in outcomes])),
        "within 1": float(np.mean(sure)) if sure else None,
        "bias": float(np.mean(errors)) if errors else None,
        "gross": float(np.mean([one.is_gross for one in outcomes])),
    }


LIMITS: dict[tuple[str, str], dict[str, float]] = {
    ("narrow", "checkpoints"): {"adaptive": 16, "adaptive, 8 workers": 24},
    ("narrow", "rounds"): {"adaptive, 8 workers": 6},
    ("narrow", "within 1"): dict.fromkeys(list(ORDERS)[3:], 0.98),
    ("dip", "gross"): dict.fromkeys(list(ORDERS)[3:], 0.0),
    ("spike", "gross"): dict.fromkeys(list(ORDERS)[3:], 0.0),
}
"""By shape and figure: at most, for `within 1` at least."""


def run(runs: int = RUNS) -> list[dict[str, Any]]:
    """The limited figures, each beside those of the orders that have no limit."""
    return limited(measure(runs, {shape for shape, _ in LIMITS}))


def limited(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_place = {(row["shape"], row["order"]): row for row in rows}
    found = []
    for (shape, figure), limits in LIMITS.items():
        least = figure == "within 1"
        for order in ORDERS:
            value, limit = by_place[shape, order][figure], limits.get(order)
            is_met = limit is None or (value >= limit if least else value <= limit)
            found.append(
                {
                    "name": f"{figure}, {shape}, {order}",
                    "value": value,
                    "unit": {"checkpoints": "of 1,001", "rounds": ""}.get(figure, "of runs"),
                    "limit": "" if limit is None else f"{'>=' if least else '<='} {limit:g}",
                    "ok": is_met,
                }
            )
    return found


if __name__ == "__main__":
    from jobs import terminal

    table = measure(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
    terminal.table(table, list(table[0]))
    missed = [row for row in limited(table) if not row["ok"]]
    for row in missed:
        print(f"missed: {row['name']}: {row['value']:g} ({row['limit']})")
    sys.exit(bool(missed))
