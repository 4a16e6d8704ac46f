"""How often the 95 % interval of a sub-sampled metric holds the rate, and whether that is unbiased.

python -m jobs.bench.subsample          # 4,000 checkpoints a cell, a few minutes of one core
python -m jobs.bench.subsample 400

Prompts differ by a logit-normal effect, as in `coverage`. A cheap metric says the judge's label of
each rollout rightly or not, and rollouts are judged by it.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from jobs.bench import _machine
from jobs.bench.coverage import SPREAD, _mean, _own
from pipeline import twophase

LONG = True
RUNS = 4_000
CELL, POOLED = 92.0, 94.0
"""Least coverage in percent of each cell, and of all together."""
THIN_CELL = 90.0
"""As much where a stratum expects fewer than `twophase.LEAST` judged rollouts a checkpoint."""
BIAS = 4.0
"""Most standard errors between the mean estimate and the rate."""
THIN_BIAS = 0.2
"""Most of an estimate's own standard deviation, where a stratum is thin: a ratio is biased."""
BATCH = 400
"""Checkpoints at a time, to bound memory."""
RATES = (0.01, 0.05, 0.2, 0.5, 0.8, 0.97)
DESIGNS = ((64, 4), (256, 4), (256, 1))
"""Prompts, rollouts a prompt."""
SHARES = ((0.1, 0.1), (0.3, 0.3), (0.05, 0.5), (1.0, 0.2))
"""Of the rollouts that the cheap metric does not pay, and of those that it pays."""
PROXIES = ((0.9, 0.95), (0.5, 0.5), (0.99, 0.99))
"""How often it pays what the label means, and does not pay what it does not."""
Design = tuple[int, int]
Pair = tuple[float, float]
Cell = tuple[float, Design, Pair, Pair]


def run(runs: int = RUNS) -> list[dict[str, Any]]:
    """Coverage of every cell's interval, pooled by rate, share and proxy; bias of the estimates."""
    found = {
        (rate, design, shares, proxy): held(rate, design, shares, proxy, runs)
        for rate in RATES
        for design in DESIGNS
        for shares in SHARES
        for proxy in PROXIES
    }
    covered = np.concatenate([cover for cover, _ in found.values()])
    rows = [_row("sub-samples, pooled", 100 * covered.mean(), "%", POOLED)]
    for place, what in enumerate(("rate", "prompts x rollouts", "shares", "proxy")):
        for value in dict.fromkeys(key[place] for key in found):
            part = np.concatenate([c for key, (c, _) in found.items() if key[place] == value])
            rows.append(_row(f"{what} {value}", 100 * part.mean(), "%", CELL))
    thin = {key: one for key, one in found.items() if is_thin(*key)}
    full = {key: one for key, one in found.items() if key not in thin}
    for what, part, least in (("", full, CELL), ("thin, ", thin, THIN_CELL)):
        worst = min(part, key=lambda key: part[key][0].mean())
        name = f"{what}lowest of {len(part)}: {worst}"
        rows.append(_row(name, 100 * part[worst][0].mean(), "%", least))
    rows.append(_bias("largest bias", {key: bias for key, (_, bias) in full.items()}, "se", BIAS))
    own = {key: bias / len(cover) ** 0.5 for key, (cover, bias) in thin.items()}
    return [*rows, _bias("thin, largest bias", own, "sd", THIN_BIAS)]


def is_thin(rate: float, design: Design, shares: Pair, proxy: Pair) -> bool:
    """Whether a stratum that is not judged whole expects too few judged rollouts."""
    paid = rate * proxy[0] + (1 - rate) * (1 - proxy[1])
    rollouts = design[0] * design[1]
    return any(
        share < 1 and rollouts * of * share < twophase.LEAST
        for of, share in zip((1 - paid, paid), shares, strict=True)
    )


def _bias(name: str, found: Mapping[Cell, float], unit: str, limit: float) -> dict[str, Any]:
    cell = max(found, key=lambda key: abs(found[key]))
    most = abs(found[cell])
    told = {"name": f"{name}: {cell}", "value": most, "unit": unit, "limit": f"<= {limit:g}"}
    return told | {"ok": most <= limit}


def _row(name: str, share: float, unit: str, least: float) -> dict[str, Any]:
    told = {"name": name, "value": share, "unit": unit, "limit": f">= {least:g}"}
    return told | {"ok": share >= least}


def held(rate: float, design: Design, shares: Pair, proxy: Pair, runs: int) -> tuple[Any, float]:
    """Of each checkpoint whether its interval holds the rate, and their mean error over its se.

    Checkpoints of which nobody was judged have no interval and are left out.
    """
    rng = np.random.default_rng([int(1e4 * rate), *design, *(int(100 * x) for x in shares + proxy)])
    parts = [
        estimates(rate, design, shares, proxy, min(BATCH, runs - done), rng)
        for done in range(0, runs, BATCH)
    ]
    told = pl.concat(parts).drop_nulls("rate")
    truth = _mean(rate)
    error = told["rate"].to_numpy() - truth
    covered = (told["lo"].to_numpy() <= truth) & (truth <= told["hi"].to_numpy())
    spread = error.std() / np.sqrt(len(error))
    return covered, float(error.mean() / spread) if spread else 0.0


def estimates(
    rate: float, design: Design, shares: Pair, proxy: Pair, runs: int, rng: np.random.Generator
) -> pl.DataFrame:
    """`twophase.rates` of so many checkpoints."""
    rows = simulated(rate, design, shares, proxy, runs, rng)
    cells = twophase.cells(rows, {"judge_a": "judge_a_stratum"}, ["run"]).collect()
    return twophase.rates(cells, "judge_a", "binary", ["run"])


def simulated(
    rate: float, design: Design, shares: Pair, proxy: Pair, runs: int, rng: np.random.Generator
) -> pl.LazyFrame:
    """Rollouts of so many checkpoints, called run."""
    n, k = design
    effect = rng.normal(0, SPREAD, (runs, n, 1))
    label = rng.random((runs, n, k)) < expit(_own(rate) + effect)
    paid = rng.random(label.shape) < np.where(label, proxy[0], 1 - proxy[1])
    judged = rng.random(label.shape) < np.where(paid, shares[1], shares[0])
    places = np.indices(label.shape).reshape(3, -1)
    frame = pl.DataFrame(
        {
            "run": places[0],
            "prompt_id": places[1],
            "judge_a": np.where(judged, label, np.nan).ravel(),
            "judge_a_stratum": paid.ravel().astype(np.float64),
            "judge_a_chance": np.where(paid, shares[1], shares[0]).ravel(),
            "null_reason": pl.Series([None], dtype=pl.String).new_from_index(0, label.size),
        }
    )
    return frame.with_columns(pl.col("judge_a").fill_nan(None)).lazy()


def main(argv: Sequence[str]) -> int:
    print(_machine.describe())
    rows = run(int(argv[0]) if argv else RUNS)
    for row in rows:
        print(f"{row['name']}: {row['value']:.3g} {row['unit']} ({row['limit']})")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
