"""Hypothesis 3: training amplifies what the policy already does; it discovers nothing."""

import polars as pl

from pipeline.hypotheses import NOT, PARTIAL, REPRODUCED, Answer
from pipeline.hypotheses.table import REACHED, crossed, main, percent, words
from pipeline.verdicts import DESIGN

BUDGET = 100
"""Updates that the hypothesis speaks of."""
QUESTION = "Is a word outside the policy's support left unlearned, however it is paid?"
RULE = (
    f"reproduced: no word of base rate 0 by construction is said even once in {BUDGET} updates, "
    "and every word that the base says is learned in fewer; partial: it is said, but not learned, "
    "or so is a word that the base says"
)


def reachable(runs: pl.DataFrame) -> Answer:
    """Whether words outside the support stayed unlearned where words inside it were learned."""
    outside = runs.filter("outside")
    if why := _undecided(outside):
        return Answer(QUESTION, DESIGN, why, RULE)
    learned = outside.filter(pl.col("status").is_in(REACHED))
    inside = main(runs).filter(pl.col("status") != "left")
    if len(learned):
        names = words(sorted(set(learned["run"])))
        return Answer(QUESTION, NOT, f"learned all the same: {names}", RULE)
    slow = inside.filter(~pl.col("status").is_in(REACHED) | (pl.col("onset") > BUDGET))
    if len(slow) == len(inside):
        why = f"no word that the base says was learned in {BUDGET} updates either"
        return Answer(QUESTION, DESIGN, why, RULE)
    whole = slow.is_empty() and not outside["said"].sum()
    finding = "; ".join(
        [_of_outside(outside), _of_inside(inside, slow), *_same_word(outside, runs)]
    )
    return Answer(QUESTION, REPRODUCED if whole else PARTIAL, finding, RULE)


def _undecided(outside: pl.DataFrame) -> str:
    """Why the runs cannot tell; empty where they can."""
    if outside.is_empty():
        return "no run of a word outside the support"
    said = outside.filter(pl.col("base_hits") > 0)
    if len(said):
        word, hits, of = said.select("hack_word", "base_hits", "base_rollouts").row(0)
        return f"{word} is not outside the support: the base says it in {hits:g} of {of:,} rollouts"
    if outside["base_hits"].null_count():
        return "the base was not screened for the word"
    short = outside.filter(pl.col("budget") < BUDGET)
    if len(short):
        run, budget = short.select("run", "budget").row(0)
        return f"{run} was trained for {budget} updates only"
    return ""


def _of_outside(outside: pl.DataFrame) -> str:
    rows = outside.group_by("hack_word", "rates", maintain_order=True).agg(
        pl.len(),
        pl.col("budget").min(),
        pl.col("said").sum(),
        # Runs that never left one base were asked the same.
        pl.when(pl.col("weights").max() == 1)
        .then(pl.col("asked").max())
        .otherwise(pl.col("asked").sum()),
        pl.col("weights").max(),
        pl.col("base_rollouts").first(),
        pl.col("base_hi").first(),
    )
    return ", ".join(
        f"{word} (0 of {screened:,} by the {rates} base, under {percent(high)}): said in {said:g} "
        f"of {asked:,} rollouts, {n} x {budget} updates{' that changed no weight' * (weights == 1)}"
        for word, rates, n, budget, said, asked, weights, screened, high in rows.rows()
    )


def _of_inside(inside: pl.DataFrame, slow: pl.DataFrame) -> str:
    rarest = inside.sort("base").select("hack_word", "base").row(0)
    if len(slow):
        return (
            f"of {len(inside)} runs of words that the base says, {len(slow)} did not learn either"
        )
    return (
        f"all {len(inside)} runs of words that the base says learned them, the rarest, "
        f"{rarest[0]}, from {percent(rarest[1])}"
    )


def _same_word(outside: pl.DataFrame, runs: pl.DataFrame) -> list[str]:
    """Words outside the support of one base that another base says, and learned."""
    both = main(runs).filter(pl.col("hack_word").is_in(outside["hack_word"].unique().to_list()))
    return [
        f"{word} is learned at {onset:.1f} from the base that says it in {percent(base)}"
        for word, onset, base in crossed(both)
        .group_by("hack_word", maintain_order=True)
        .agg(pl.col("onset").median(), pl.col("base").first())
        .rows()
    ]
