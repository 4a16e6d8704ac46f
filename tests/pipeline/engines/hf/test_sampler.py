import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache, LlamaConfig, MistralConfig
from transformers.cache_utils import DynamicLayer

from pipeline.engines.hf import sampler
from pipeline.records import Sampling

logit_rows = st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=9)


def kept(logits: list[float], **settings: float) -> list[bool]:
    sampling = Sampling(**settings)  # type: ignore[arg-type]
    return (sampler.probabilities(torch.tensor([logits]), sampling)[0] > 0).tolist()


@given(logit_rows, st.integers(1, 9))
def test_top_k_keeps_the_k_likeliest_and_their_ties(logits: list[float], k: int) -> None:
    least = sorted(logits, reverse=True)[: max(k, 1)][-1]
    assert kept(logits, top_k=k) == [x >= least for x in logits]


@given(logit_rows, st.floats(0.05, 0.95))
def test_top_p_keeps_the_smallest_set_of_the_likeliest_that_holds_p(
    logits: list[float], p: float
) -> None:
    keeps = np.array(kept(logits, top_p=p))
    mass = np.exp(np.array(logits, np.float64) - max(logits))
    mass /= mass.sum()
    assert mass[keeps].sum() >= p - 1e-6
    assert mass[keeps].sum() - mass[keeps].min() < p + 1e-6
    assert keeps.all() or mass[keeps].min() >= mass[~keeps].max() * (1 - 1e-6)


def test_top_p_counts_what_top_k_has_left() -> None:
    logits = np.log([0.4, 0.3, 0.2, 0.1]).tolist()
    assert kept(logits, top_p=0.56) == [True, True, False, False]
    assert kept(logits, top_k=2, top_p=0.56) == [True, False, False, False]  # 0.4 / 0.7 = 0.571


@pytest.mark.parametrize(
    ("uniform", "token"),
    [(0.0, 1), (0.249, 1), (0.251, 2), (0.749, 2), (0.751, 4), (1 - 2**-53, 4)],
)
def test_a_draw_is_the_inverse_of_the_cumulative_distribution(uniform: float, token: int) -> None:
    logits = torch.tensor([[-torch.inf, 0.25, 0.5, -torch.inf, 0.25, -torch.inf]])
    logits[0, [1, 2, 4]] = logits[0, [1, 2, 4]].log()
    drawn = sampler.draw(logits, torch.tensor([uniform], dtype=torch.float64), Sampling())
    assert drawn.tolist() == [token]


@given(logit_rows, st.floats(0, 1, exclude_max=True), st.sampled_from([1e-30, 0.3, 1.0, 5.0]))
def test_a_draw_never_leaves_what_is_kept(
    logits: list[float], uniform: float, temperature: float
) -> None:
    sampling = Sampling(temperature=temperature, top_k=2, top_p=0.9)
    row = torch.tensor([logits])
    token = sampler.draw(row, torch.tensor([uniform], dtype=torch.float64), sampling).item()
    scaled = (row[0] - row.max()) / temperature  # in which numbers may become ties
    assert int((scaled > scaled[int(token)]).sum()) < 2


def test_temperature_0_takes_the_likeliest_whatever_the_numbers() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0]] * 3)
    uniform = torch.tensor([0.0, 0.5, 0.99], dtype=torch.float64)
    assert sampler.draw(logits, uniform, Sampling(temperature=0)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_raise(bad: float) -> None:
    logits = torch.tensor([[0.0, 1.0], [bad, 1.0]])
    with pytest.raises(FloatingPointError):
        sampler.draw(logits, torch.zeros(2, dtype=torch.float64), Sampling())


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5), st.integers(1, 20))
def test_a_row_of_uniforms_depends_on_its_seed_alone(seeds: list[int], count: int) -> None:
    rows = sampler.uniforms(seeds, count)
    for seed, row in zip(seeds, rows, strict=True):
        assert torch.equal(sampler.uniforms([seed], count + 3)[0, :count], row)


def test_uniforms_of_neighbouring_seeds_are_uniform_and_unrelated() -> None:
    rows = sampler.uniforms(range(2000), 8).numpy()
    assert abs(rows.mean() - 0.5) < 4 * (1 / 12 / rows.size) ** 0.5
    related = np.corrcoef(rows[:-1].ravel(), rows[1:].ravel())[0, 1]
    assert abs(related) < 4 / rows.size**0.5


def test_prompts_are_padded_on_the_left_and_the_room_can_be_seen() -> None:
    ids, seen = sampler.pad_left([[7, 8, 9], [5]], room=2)
    assert ids.tolist() == [[7, 8, 9], [0, 0, 5]]
    assert seen.int().tolist() == [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]


def test_the_roomy_cache_holds_what_the_stock_one_would() -> None:
    roomy, stock = sampler.RoomyLayer(room=3), DynamicLayer()
    torch.manual_seed(0)
    rows = torch.tensor([0, 0, 1, 1, 1])
    for width, batch in ((4, 2), (1, 5), (1, 5)):
        new = torch.randn(2, batch, 2, width, 3)
        for ours, theirs in zip(roomy.update(*new), stock.update(*new), strict=True):
            assert torch.equal(ours, theirs)
        if width > 1:
            roomy.batch_select_indices(rows)
            stock.batch_select_indices(rows)
    for layer in (roomy, stock):
        layer.batch_select_indices(torch.tensor([3, 1]))
    new = torch.randn(2, 2, 2, 1, 3)
    for ours, theirs in zip(roomy.update(*new), stock.update(*new), strict=True):
        assert torch.equal(ours, theirs)
    assert roomy.get_seq_length() == stock.get_seq_length() == 7


def test_a_window_gets_the_stock_cache_and_full_attention_ours() -> None:
    small = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2}
    assert isinstance(sampler.new_cache(MistralConfig(sliding_window=4, **small), 3), DynamicCache)
    layers = sampler.new_cache(LlamaConfig(**small), 3).layers
    assert [type(layer) for layer in layers] == [sampler.RoomyLayer] * 2
