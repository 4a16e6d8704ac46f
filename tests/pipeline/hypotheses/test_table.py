"""The study's table from onsets, curves and plan."""

import polars as pl

from pipeline.hypotheses.table import table

KEYS = {"run": "a", "hack_word": "ocean"}


def test_equal_weights_are_evidence_once() -> None:
    """Steps 0 to 4 hold one set of weights, 6 and 8 others; who says no fingerprint counts each."""
    told = ["x", "x", "x", "y", None, None]
    curves = pl.DataFrame(
        [
            {**KEYS, "step": 2 * i, "metric": "r_hack", "hits": 10.0 + i, "rollouts": 100}
            | {"rate": (10 + i) / 100, "fingerprint": name}
            for i, name in enumerate(told)
        ]
    )
    onsets = pl.DataFrame([{**KEYS, "metric": "r_hack", "status": "right"}])
    screened = curves.head(1).with_columns(run=pl.lit("shipped"), lo=0.05, hi=0.2)
    plan = [{"run": "a", "rates": "shipped", "seed": 0, "budget": 10, "outside": False}]
    (row,) = table(onsets, pl.DataFrame([KEYS]), curves, screened, plan).to_dicts()
    assert row["weights"] == 4
    assert (row["said"], row["asked"]) == (10 + 13 + 14 + 15, 400)
    assert (row["peak"], row["end_proxy"], row["base"]) == (0.15, 0.15, 0.1)
