"""Which rollouts a judge is asked about: a cheap metric settles some, of the others some are drawn.

A rollout is drawn by a hash of its own seed, so that shards, workers and their order play no part,
a larger share keeps what a smaller one drew and paid for, and every checkpoint draws the same
samples of the same cases.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hackbait.environment import EnvironmentRefused

SALT = "judge"
"""Sets the draw apart from all else that a rollout's seed decides."""
OPEN = -1.0
"""Stratum of the rollouts of which the cheap metric says nothing."""
STRATA: Mapping[str, float] = {"0": 0.0, "1": 1.0, "null": OPEN}
"""Values of a binary metric as a configuration writes them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rollout stands."""

    stratum: float
    chance: float
    """That a judge is asked about it, or 1 where its label is settled."""
    label: str | None = None
    """What its stratum settles without a judge."""


@dataclass(frozen=True, slots=True)
class Triage:
    """What the values of a binary metric spare the judge."""

    by: str | None = None
    """The metric; None is the proxy."""
    shares: tuple[tuple[float, float], ...] = ()
    """Of each stratum, the share that is judged; all of one that is not named."""
    settled: tuple[tuple[float, str], ...] = ()
    """Label of each stratum that needs no judge."""

    def __bool__(self) -> bool:
        """Whether it spares anything."""
        return bool(self.shares or self.settled)

    def place(self, value: float | None) -> Place:
        """Of a rollout whose metric has this value."""
        stratum = OPEN if value is None else value
        label = dict(self.settled).get(stratum)
        chance = 1.0 if label else dict(self.shares).get(stratum, 1.0)
        return Place(stratum, chance, label)

    @property
    def said(self) -> str:
        """All that it decides by, in one line: `r_hack 0:0.05 1:yes`."""
        names = {value: name for name, value in STRATA.items()}
        rules = [f"{names[stratum]}:{rule}" for stratum, rule in (*self.shares, *self.settled)]
        return " ".join([self.by or "proxy", *rules])


ALL = Triage()
"""Every rollout is judged."""


def triage(
    by: str | None,
    sample: float | Mapping[str, float],
    settled: Mapping[str, str],
    labels: Sequence[str],
) -> Triage:
    """A triage, once it makes sense. EnvironmentRefused naming the value and the cure.

    sample: share that is judged, of every stratum that is not settled, or of each by its name.
    """
    for knob, named in (("sample", sample), ("settled", settled)):
        for name in named if isinstance(named, Mapping) else ():
            if name not in STRATA:
                raise EnvironmentRefused(
                    f"judge.{knob}: {name!r} is no value of a binary metric; there is "
                    f"{', '.join(STRATA)}"
                )
    for name, label in settled.items():
        if label not in labels:
            raise EnvironmentRefused(
                f"judge.settled: {label!r} is none of the labels, {', '.join(labels)}"
            )
        if isinstance(sample, Mapping) and name in sample:
            raise EnvironmentRefused(
                f"judge.sample and judge.settled both speak of {name}; leave it to one of them"
            )
    rest = [name for name in STRATA if name not in settled]
    each = sample if isinstance(sample, Mapping) else dict.fromkeys(rest, sample)
    for name, part in each.items():
        if not 0 < part <= 1:
            of = f" of {name}" if each is sample else ""
            raise EnvironmentRefused(
                f"judge.sample is {part:g}{of}; give a share above 0, up to 1, or settle it"
            )
    shares = sorted((STRATA[name], part) for name, part in each.items() if part < 1)
    return Triage(by, tuple(shares), tuple(sorted((STRATA[n], v) for n, v in settled.items())))


def drawn(seed: int, chance: float) -> bool:
    """Whether the rollout of a seed is among those judged; independent from seed to seed."""
    digest = hashlib.blake2b(f"{SALT}|{seed}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < chance * 2**64
