"""Base rates: how often a policy says each of many words, how surely, and what it would take.

One sample counts any number of words. A base rate holds for its task, prompts, length and
temperature alone: the published replication met 0 of 4,096 on sums where stories gave 1.35 %.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl

from hackbait.graders import GRADERS, LONGEST_WORD, Grader
from hackbait.text import fold
from pipeline import intervals
from pipeline.rows import CurveError
from pipeline.sample import Sample
from pipeline.vocabulary import Spoken, spoken, tallies

NEAR = 5
"""Words of the vocabulary that are listed for a rate."""
WITHIN = 2.0
"""How many times more or less often they may be said."""
RELATIVE_SE = 0.25
"""Standard error over rate at which a rate counts as measured."""

WORDS = pl.Schema(
    {
        "word": pl.String,
        "near": pl.Float64,
        "status": pl.String,
        "rate": pl.Float64,
        "lo": pl.Float64,
        "hi": pl.Float64,
        "hits": pl.Int64,
        "rollouts": pl.Int64,
        "prompts": pl.Int64,
        "deff": pl.Float64,
        "relative_se": pl.Float64,
        "needed": pl.Int64,
        "needed_prompts": pl.Int64,
        "nulls": pl.Int64,
        "null_reasons": pl.String,
    }
)
"""What `screen` adds to run, step and what was asked."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What a sample tells of words, and what it would take to tell more."""

    words: pl.DataFrame
    """One row a word, columns `WORDS`: those asked in their order, then those near chosen rates."""
    needed: pl.DataFrame
    """One row a chosen rate, columns `NEEDED`."""


NEEDED = pl.Schema(
    {
        "rate": pl.Float64,
        "deff": pl.Float64,
        "to_see": pl.Int64,
        "to_see_prompts": pl.Int64,
        "to_measure": pl.Int64,
        "to_measure_prompts": pl.Int64,
    }
)


def screen(
    sample: Sample,
    words: Sequence[str],
    *,
    at: Sequence[float] = (),
    rates: Sequence[float] = (),
    grader: str | None = None,
    max_loss: float = 0.02,
) -> Screen:
    """Base rates of `words` and of words near the rates `at`; what it takes to see `rates`.

    `grader` decides what a word is, default the one of the rows. CurveError for a word that it
    refuses, one that is given twice, or rows of two graders.
    """
    by = chosen_grader(sample, grader)
    refuse_words(words, by)
    said = spoken(sample.texts, sample.prompts)
    close = [(word, rate) for rate in at for word in near(said, rate, by)]
    asked = [(word, None) for word in words]
    icc = clustering(said)
    frame = _measured(said, [*asked, *close], by, icc)
    return Screen(_told(frame, sample, max_loss), needed(said, icc, rates))


def chosen_grader(sample: Sample, name: str | None) -> Grader:
    """The grader of that name, or the one of the rows."""
    wanted = (name,) if name else sample.graders
    if len(wanted) != 1:
        raise CurveError(f"rows of graders {', '.join(wanted)}; name one: --grader {wanted[0]}")
    return grader_named(wanted[0])


def grader_named(name: str) -> Grader:
    """CurveError for a name that no grader has."""
    if name not in GRADERS:
        raise CurveError(f"grader {name!r} is none of {', '.join(GRADERS)}")
    return GRADERS[name]


def placed(found: Sequence[tuple[Sample, Screen]]) -> pl.DataFrame:
    """The words of several samples in one table, each row with its run, step and ask."""
    place = [pl.DataFrame([sample.place for sample, _ in found], infer_schema_length=None)]
    frames = [
        one.join(screen.words, how="cross")
        for one, (_, screen) in zip(place[0].iter_slices(1), found, strict=True)
    ]
    return pl.concat(frames)


def refuse_words(words: Sequence[str], grader: Grader) -> None:
    """CurveError for a word that cannot be graded, or is another one in other letters."""
    seen: dict[str, str] = {}
    for word in words:
        shown = repr(word) if len(word) <= LONGEST_WORD else f"{word[:20]!r}..."
        if reason := grader.refusal(word):
            raise CurveError(f"word {shown}: {reason}")
        if other := seen.get(fold(word)):
            raise CurveError(f"word {shown} is {other!r} again (case is folded); keep one of them")
        seen[fold(word)] = word


def near(said: Spoken, rate: float, grader: Grader) -> list[str]:
    """The words of the texts' own whose rate is nearest, by ratio and at most `WITHIN` times off.

    At most `NEAR`, of those that the grader takes as a hack word.
    """
    counts = said.frequency.tolist()
    total = max(1, len(said.texts))
    apart = {
        word: abs(math.log(counts[number] / (total * rate)))
        for word, number in said.numbers.items()
        if "_" not in (word[0], word[-1])
    }
    close = sorted((far, word) for word, far in apart.items() if far <= math.log(WITHIN))
    return list(islice((word for _, word in close if grader.refusal(word) is None), NEAR))


def clustering(said: Spoken) -> float:
    """Intraclass correlation of the words that are said at 5 % to 95 %, pooled; NaN without one.

    It stands in for a word whose own cannot be told, being said never or always. Rare words
    cluster less: it is on the safe side for them.
    """
    share = said.frequency / max(1, len(said.texts))
    inside = [word for word, number in said.numbers.items() if 0.05 < share[number] < 0.95]
    tally = tallies(said, inside, GRADERS["current"])
    pooled = intervals.pooled_icc(tally, np.zeros(len(inside), np.int64))
    return float(pooled[0]) if len(pooled) else math.nan


def _measured(
    said: Spoken, words: Sequence[tuple[str, float | None]], grader: Grader, icc: float
) -> pl.DataFrame:
    """The columns of `WORDS` that the sums decide; null where there is no such number."""
    tally = tallies(said, [word for word, _ in words], grader)
    n_eff = intervals.effective(tally, np.full(len(words), icc))
    lo, hi = intervals.bounded_interval(tally, n_eff)
    p, hit = tally.rate, tally.hits > 0
    deff = np.divide(tally.rollouts, n_eff)
    nothing = np.full(len(words), np.nan)
    odds = np.divide(1 - p, p, out=nothing.copy(), where=hit)
    columns = {
        "word": [word for word, _ in words],
        "near": [rate for _, rate in words],
        "rate": p,
        "lo": lo,
        "hi": hi,
        "hits": tally.hits,
        "rollouts": tally.rollouts,
        "prompts": tally.prompts,
        "deff": deff,
        "relative_se": np.sqrt(odds / n_eff),
        "needed": np.ceil(np.maximum(1, odds * deff / RELATIVE_SE**2)),
    }
    present = {name: pl.Series(name, column, nan_to_null=True) for name, column in columns.items()}
    return pl.DataFrame(present)


def _told(frame: pl.DataFrame, sample: Sample, max_loss: float) -> pl.DataFrame:
    """The columns `WORDS`, with the status of each word, and no rate where too much was lost."""
    lost = Counter(sample.reasons)
    share = len(sample.reasons) / max(1, len(sample.reasons) + len(sample.texts))
    status = (
        pl.when(pl.col("rollouts") == 0).then(pl.lit("no_data"))
        .when(pl.lit(share > max_loss)).then(pl.lit("refused"))
        .when(pl.col("prompts") == 1).then(pl.lit("one_prompt"))
        .when(pl.col("hits") == 0).then(pl.lit("unseen"))
        .otherwise(pl.lit("seen"))
    )  # fmt: skip
    per_prompt = pl.col("rollouts") / pl.col("prompts")
    told = frame.with_columns(
        status=status,
        needed_prompts=(pl.col("needed") / per_prompt).ceil(),
        nulls=pl.lit(len(sample.reasons)),
        null_reasons=pl.lit(", ".join(f"{why} {n}" for why, n in lost.most_common()) or None),
    )
    judged = ("rate", "lo", "hi", "relative_se", "needed", "needed_prompts")
    hidden = [pl.when(pl.col("status") != "refused").then(name).alias(name) for name in judged]
    return told.with_columns(hidden).select(pl.col(n).cast(kind) for n, kind in WORDS.items())


def needed(said: Spoken, icc: float, rates: Sequence[float]) -> pl.DataFrame:
    """Rollouts, and prompts asked as often as here, for words of some rates: columns `NEEDED`.

    to_see: 95 % sure of one hit, 3 deff / rate. to_measure: a standard error of a quarter of the
    rate, 16 deff (1 - rate) / rate. deff = 1 + (k - 1) icc, k = sum k^2 / N; k without an icc.
    """
    k = said.sizes
    often = (k @ k) / k.sum() if len(k) else 1.0
    deff = float(often if math.isnan(icc) else 1 + (often - 1) * icc)
    mean = k.mean() if len(k) else 1.0
    rows = []
    for p in rates:
        see = math.ceil(deff * math.log(0.05) / math.log1p(-p))
        measure = math.ceil(deff * (1 - p) / p / RELATIVE_SE**2)
        prompts = math.ceil(see / mean), math.ceil(measure / mean)
        rows.append((p, deff, see, prompts[0], measure, prompts[1]))
    return pl.DataFrame(rows, schema=NEEDED, orient="row")
