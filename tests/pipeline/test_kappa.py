"""Agreement beyond chance: its laws, and how often its interval holds it."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kappa import alpha, jackknife, kappa

CONFUSION = st.tuples(*[st.integers(0, 9)] * 4)


@given(CONFUSION)
def test_chance_corrected_agreement_keeps_its_laws(counts: tuple[int, int, int, int]) -> None:
    tp, fp, fn, tn = counts
    given_, swapped, negated = (
        np.array([c], np.float64) for c in (counts, (tp, fn, fp, tn), (tn, fn, fp, tp))
    )
    for statistic in (kappa, alpha):
        value = statistic(given_)
        np.testing.assert_allclose(statistic(swapped), value, atol=1e-12)
        np.testing.assert_allclose(statistic(negated), value, atol=1e-12)
        assert np.isnan(value[0]) or value[0] <= 1 + 1e-12
        if fp + fn == 0 and tp and tn:
            np.testing.assert_allclose(value, 1)


def test_an_interval_of_kappa_holds_it_nearly_as_often_as_it_says() -> None:
    """16 prompts of 16 rollouts whose truth and column both depend on the prompt; 95 % nominal."""
    rng = np.random.default_rng(3)

    def drawn(prompts: int) -> np.ndarray[Any, Any]:
        skew, skill = rng.normal(size=(2, prompts, 1))
        truth = rng.random((prompts, 16)) < 1 / (1 + np.exp(-skew))
        right = rng.random((prompts, 16)) < 1 / (1 + np.exp(-1.5 - skill))
        column = truth == right
        kinds = (column & truth, column & ~truth, ~column & truth, ~column & ~truth)
        return np.stack([kind.sum(axis=1) for kind in kinds], axis=1).astype(np.float64)

    true = kappa(drawn(100_000).sum(axis=0)[None])[0]
    ends = np.array([jackknife(drawn(16), kappa) for _ in range(400)])
    assert ((ends[:, 0] <= true) & (true <= ends[:, 1])).mean() > 0.915
