"""What n runs a word can resolve, before they are trained.

onset power --words 6
onset power --words 3 --runs 4 6 10 --shift 1.5
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from jobs import command, terminal
from pipeline import power
from pipeline.config import PowerConfig, read

SPACINGS = (1, 2, 5, 10)
"""Steps between checkpoints for which precision is told."""


def main(argv: Sequence[str]) -> int:
    """Print the table; 0."""
    config = read(PowerConfig, argv)
    rng = np.random.default_rng(config.seed)
    found = power.designs(config.runs, config.words, config.shift, rng, config.alpha)
    if config.json:
        terminal.as_json([asdict(design) for design in found])
        return 0
    terminal.table([_readable(design) for design in found], list(_readable(found[0])))
    pairs = math.comb(config.words, 2)
    print(
        f"One pair: its own p, at {config.alpha:g}. All pairs: adjusted by Holm over {pairs}, so "
        f"that the first to be resolved needs {config.alpha / pairs:.2g}; power is that pair's."
    )
    print(
        f"{config.words} words are {pairs} pairs: {power.runs_needed(pairs, config.alpha)} runs a "
        f"word are the fewest that can resolve one at {config.alpha:g}."
    )
    print(
        f"Base rate against onset needs {power.words_needed(config.alpha)} words; runs do not "
        "replace them."
    )
    print(_precision(config, rng))
    return 0


def _readable(design: power.Design) -> dict[str, object]:
    return {
        "runs a word": design.runs,
        "smallest p": design.floor,
        "smallest p, all pairs": design.floor_holm,
        "can resolve": "yes" if design.resolves else "no",
        "power, one pair": round(design.power, 2),
        "power, all pairs": round(design.power_holm, 2),
    }


def _precision(config: PowerConfig, rng: np.random.Generator) -> str:
    deff = 1 + (config.samples - 1) * config.icc
    rollouts = config.prompts * config.samples
    steps = [(h, power.precision(rollouts, deff, h, config.slope, rng)) for h in SPACINGS]
    said = ", ".join(f"{within:.1f} at every {h}" if h > 1 else f"{within:.1f} at every step"
                     for h, within in steps)  # fmt: skip
    return (
        f"One onset, {config.prompts} prompts x {config.samples}, slope {config.slope:g}: 95 % "
        f"within +-{said} steps."
    )


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
