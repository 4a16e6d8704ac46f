"""How often the 95 % intervals hold the truth: onsets of curves with a known crossing, gaps, rates.

python -m jobs.bench.coverage          # 4,000 runs a cell, about ten minutes of one core
python -m jobs.bench.coverage 400      # a minute

Prompts differ by a logit-normal effect of sd 1 that stays with them along the curve, which is what
the published completions look like; checkpoints lie on a grid that starts anywhere.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from jobs.bench import _machine, _shapes
from jobs.bench._shapes import Shape
from pipeline import crossing, intervals
from pipeline.crossing import Counts

Array = NDArray[np.float64]
Design = tuple[int, int, int]
"""Prompts, rollouts a prompt, steps between checkpoints."""

LONG = True
RUNS = 4_000
CELL, POOLED = 92.0, 94.0
"""Least coverage in percent of each cell, and of all together."""
DESIGNS: tuple[Design, ...] = (
    *((8, 8, 1), (16, 4, 3), (16, 8, 1), (31, 4, 1), (32, 1, 1), (32, 4, 1)),
    *((64, 1, 3), (64, 4, 1), (64, 4, 5), (64, 4, 10), (256, 4, 1), (256, 4, 2)),
)
THIN: Design = (64, 4, 1)
HARD: tuple[Design, ...] = ((64, 4, 1), (16, 4, 1))
GAPS = ((0.5, 0.5, 1), (0.99, 0.02, 1), (0.99, 0.02, -1), (0.01, 0.95, 1), (0.9, 0.4, -1))
"""Rate of the proxy, true rate, and whether the same prompts make both (1) or one or the other."""
SCREENS = (
    *((32, 32, 2.0, 0.01), (32, 32, 2.0, 0.05), (32, 32, 2.0, 0.95), (32, 32, 2.0, 0.5)),
    *((64, 32, 2.0, 0.01), (64, 16, 2.0, 0.01), (256, 32, 2.0, 0.003), (256, 4, 2.0, 0.01)),
    *((64, 4, 1.0, 0.006), (256, 4, 1.0, 0.006), (1024, 1, 1.0, 0.01), (64, 4, 1.0, 0.5)),
)
"""Prompts, rollouts a prompt, sd of the prompts' effect on the logit, and rate of a word. With 64
rollouts a prompt and sd 2, rates of 1 % are covered 89 to 91 times in 100: more prompts help."""
SPREAD = 1.0
"""sd of the prompts' effect on the logit."""
CONFIRMED = {"plateau .40": (0.0, 1.0), "plateau .48": (0.0, 6.0), "plateau .60": (97.0, 100.0)}
"""Per cent of runs whose crossing may be confirmed, with 64 prompts of 4 at every step."""


def run(runs: int = RUNS) -> list[dict[str, Any]]:
    """Coverage of each design and each shape, of all together, of hard shapes and of gaps."""
    shapes = _shapes.published()
    held = {
        (design, name): covered(shape, design, -(-runs // len(shapes)))[0]
        for design in DESIGNS
        for name, shape in shapes.items()
    }
    rows = [_row("onsets, pooled", np.concatenate(list(held.values())), POOLED)]
    for place, cells in ((0, list(DESIGNS)), (1, list(shapes))):
        for cell in cells:
            part = np.concatenate([found for key, found in held.items() if key[place] == cell])
            rows.append(_row(f"onset, {_said(cell)}", part, CELL))
    rows += [row for design in HARD for row in hard(design, runs)]
    each = -(-runs // len(shapes))
    thin = [covered(shape, THIN, each, thin=True)[0] for shape in shapes.values()]
    rows.append(_row(f"onset, {_said(THIN)}, few prompts far from 1/2", np.concatenate(thin), CELL))
    for proxy, true, shared in GAPS:
        name = f"gap, {proxy:g} less {true:g}, prompts {'shared' if shared > 0 else 'opposed'}"
        rows.append(_row(name, gaps(proxy, true, shared, runs), CELL))
    for n, k, spread, rate in SCREENS:
        name = f"rate {rate:g}, {n} x {k}, sd {spread:g}"
        rows.append(_row(name, rates(n, k, spread, rate, runs), CELL))
    return rows


def _said(cell: Design | str) -> str:
    return cell if isinstance(cell, str) else f"{cell[0]} x {cell[1]}, every {cell[2]}"


def hard(design: Design, runs: int) -> Iterator[dict[str, Any]]:
    """Shapes that mislead: coverage, and how many crossings are confirmed that should (not) be."""
    for name, shape in _shapes.hard().items():
        held, confirmed = covered(shape, design, runs)
        yield _row(f"onset, {name}, {_said(design)}", held, CELL)
        if name in CONFIRMED and design == HARD[0]:
            low, high = CONFIRMED[name]
            share = 100 * float(np.mean(confirmed))
            found = {"name": f"confirmed, {name}", "value": share, "unit": "%"}
            yield found | {"limit": f"{low:g} to {high:g}", "ok": low <= share <= high}


def _row(name: str, held: NDArray[np.bool_], least: float) -> dict[str, Any]:
    share = 100 * float(np.mean(held))
    return {
        "name": name,
        "value": share,
        "unit": "%",
        "limit": f">= {least:g}",
        "ok": share >= least,
    }


def covered(
    shape: Shape, design: Design, runs: int, draws: int = crossing.DRAWS, thin: bool = False
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each run, whether its interval holds the true crossing, and whether it is confirmed.

    A crossing that never comes is held by an interval without an upper bound. thin: `thinned`.
    """
    rng = np.random.default_rng([*design, shape.last])
    resamples = crossing.weights(rng, design[0], draws)
    truth = np.inf if shape.crossing is None else shape.crossing
    held, confirmed = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for i in range(runs):
        counts = simulated(shape, design, rng)
        counts = thinned(counts) if thin else counts
        reached = counts.x.sum(axis=0) >= 0.5 * counts.k.sum(axis=0)
        at = int(reached.argmax()) if reached.any() else len(reached)
        where = crossing.confirmation(counts, at, 0.5)[0] if reached.any() else None
        found = crossing.interval(counts, at, where, 0.5, resamples)
        held[i] = found is not None and found.lo <= truth <= found.hi
        confirmed[i] = where is not None
    return held, confirmed


def simulated(shape: Shape, design: Design, rng: np.random.Generator) -> Counts:
    """One run: step 0, then a grid from anywhere in the first spacing on."""
    n, k, spacing = design
    start = rng.uniform(0.2, spacing) if spacing > 1 else 1.0
    steps = np.r_[0.0, np.arange(start, shape.last + 1e-9, spacing)]
    x = hits(shape.rate(steps), rng.normal(0, SPREAD, (n, 1)), k, rng)
    return Counts(steps, np.full(x.shape, float(k)), x)


def thinned(counts: Counts) -> Counts:
    """As an adaptive sweep leaves it: a quarter of the prompts where they are far from one half."""
    few = len(counts.k) // 4
    rate = counts.x[:few].sum(axis=0) / counts.k[:few].sum(axis=0)
    kept = (np.abs(rate - 0.5) <= 0.3) | (np.arange(len(counts.k)) < few)[:, None]
    return Counts(counts.steps, counts.k * kept, counts.x * kept)


def hits(rate: Array | float, effect: Array, k: int, rng: np.random.Generator) -> Array:
    """Hits of k rollouts a prompt, whose mean over prompts is about the rate, and exactly at 1/2.

    A normal effect of variance s^2 shrinks the logit of the mean by about sqrt(1 + 0.346 s^2).
    """
    return np.asarray(rng.binomial(k, expit(_own(rate) + effect)), dtype=np.float64)


def _own(rate: Array | float) -> Array:
    """Logit of a prompt without effect, where the mean over prompts shall be the rate."""
    inner = logit(np.clip(rate, 1e-6, 1 - 1e-6))
    return np.asarray(inner * np.sqrt(1 + 0.346 * SPREAD**2), dtype=np.float64)


def gaps(
    proxy: float, true: float, shared: int, runs: int, n: int = 64, k: int = 4
) -> NDArray[np.bool_]:
    """Of each of `runs` checkpoints, whether the interval of proxy - true holds the gap."""
    rng = np.random.default_rng([n, k, int(100 * proxy), int(100 * true), shared + 1])
    effect = rng.normal(0, SPREAD, (runs, n))
    x = [hits(proxy, effect, k, rng), hits(true, shared * effect, k, rng)]
    sides = []
    for tally in map(tallied, x, (k, k)):
        n_eff = intervals.effective(tally, np.full(runs, np.nan))
        sides.append([tally.rate, *intervals.bounded_interval(tally, n_eff)])
    a, b = (each - each.mean(axis=1, keepdims=True) for each in x)
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    correlation = (a * b).sum(axis=1) / np.where(size > 0, size, 1.0)
    low, high = intervals.mover(sides[0], sides[1], correlation)
    gap = _mean(proxy) - _mean(true)
    return np.asarray((low <= gap) & (gap <= high))


def rates(n: int, k: int, spread: float, rate: float, runs: int) -> NDArray[np.bool_]:
    """Of each of `runs` checkpoints, whether the interval of a rate holds it."""
    rng = np.random.default_rng([n, k, round(10 * spread), round(1e4 * rate)])
    middle = brentq(lambda logit: _mean_of(logit, spread) - rate, -40, 40)
    effect = rng.normal(0, spread, (runs, n))
    tally = tallied(rng.binomial(k, expit(middle + effect)).astype(np.float64), k)
    n_eff = intervals.effective(tally, np.full(runs, np.nan))
    low, high = intervals.bounded_interval(tally, n_eff)
    return np.asarray((low <= rate) & (rate <= high))


def _mean(rate: float) -> float:
    """The exact mean over prompts of what `hits` draws."""
    return _mean_of(float(_own(rate)), SPREAD)


def _mean_of(logit: float, spread: float) -> float:
    """Mean rate of prompts whose logits are normal, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float((expit(logit + spread * nodes) * weights).sum() / weights.sum())


def tallied(x: Array, k: int) -> intervals.Tally:
    """Sums over the prompts of each row of x, hits out of k."""
    runs, n = x.shape
    total = x.sum(axis=1)
    return intervals.Tally(
        rollouts=np.full(runs, float(n * k)),
        hits=total,
        prompts=np.full(runs, float(n)),
        squares=total,
        spread=((x - total[:, None] / n) ** 2).sum(axis=1),
        fourth=((x - total[:, None] / n) ** 4).sum(axis=1),
        sizes=np.full(runs, float(n * k * k)),
        between=(x**2).sum(axis=1) / k,
    )


def main(argv: Sequence[str]) -> int:
    print(_machine.describe())
    rows = run(int(argv[0]) if argv else RUNS)
    for row in rows:
        print(f"{row['name']}: {row['value']:.1f} {row['unit']} ({row['limit']})")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
