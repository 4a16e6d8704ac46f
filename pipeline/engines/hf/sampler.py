"""Samples a batch through a causal LM's own forward, each rollout from its own random numbers."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer

from pipeline.records import Sampling

LIVE_SHARE = 0.75
"""Finished rollouts are dropped from the batch once no more than this share of it is live."""


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values [batch, heads, positions, width] of one layer, with room for those to come.

    The stock layer concatenates: it copies all that every rollout has seen for each new token.
    """

    keys: Tensor | None
    values: Tensor | None

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.length = room, 0

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the new positions; all so far. The first call is the prefill, kept as it is."""
        start, self.length = self.length, self.length + key_states.shape[-2]
        if self.keys is None or self.values is None:
            self.keys, self.values, self.is_initialized = key_states, value_states, True
            self.room += self.length
        else:
            self.keys[:, :, start : self.length] = key_states
            self.values[:, :, start : self.length] = value_states
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def get_seq_length(self) -> int:
        """Positions written."""
        return self.length

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows, in this order, repeated where repeated; from here on there is room."""
        for name in ("keys", "values"):
            states: Tensor = getattr(self, name)[:, :, : self.length]
            roomy = states.new_empty(len(indices), states.shape[1], self.room, states.shape[3])
            torch.index_select(states, 0, indices, out=roomy[:, :, : self.length])
            setattr(self, name, roomy)


def new_cache(config: PreTrainedConfig, room: int) -> Cache:
    """A cache with room where every layer sees all positions, else the stock one."""
    stock = DynamicCache(config=config)
    if any(type(layer) is not DynamicLayer for layer in stock.layers):
        return stock
    return Cache(layers=[RoomyLayer(room) for _ in stock.layers])


def uniforms(seeds: Sequence[int], count: int) -> Tensor:
    """Float64 [seeds, count] in [0, 1). Row i is a function of seed i; fewer are the first ones."""
    return torch.from_numpy(np.stack([np.random.default_rng(s).random(count) for s in seeds]))


def draw(logits: Tensor, uniform: Tensor, sampling: Sampling) -> Tensor:
    """Token ids [batch] from logits [batch, vocabulary] and one uniform number each.

    Inverse CDF in vocabulary order and float64, so that two tokens of nearly equal rank cannot
    change places between one batch and another. Raises FloatingPointError for NaN or infinity.
    """
    logits = logits.float()
    top = logits.amax(-1, keepdim=True)
    if not bool(top.isfinite().all()):
        raise FloatingPointError("its logits are not finite")
    if sampling.temperature == 0:
        return logits.argmax(-1)
    if sampling.temperature != 1:
        logits = (logits - top) / sampling.temperature
    cdf = probabilities(logits, sampling).cumsum(-1)
    return torch.searchsorted(cdf, uniform[:, None] * cdf[:, -1:], right=True)[:, 0]


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Weights [batch, vocabulary] in float64, not summing to 1 where top_p cuts.

    top_k first (ties with the last kept stay), then the smallest set of the most probable tokens
    that holds top_p of what is left.
    """
    if 0 < sampling.top_k < logits.shape[-1]:
        least = logits.topk(sampling.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    weights = logits.softmax(-1).double()
    if sampling.top_p >= 1:
        return weights
    ordered, order = weights.sort(stable=True, dim=-1, descending=True)
    ahead = ordered.cumsum(-1) - ordered
    cut = ahead >= sampling.top_p
    cut[:, 0] = False
    return weights.masked_fill(cut.new_empty(cut.shape).scatter_(-1, order, cut), 0)


def pad_left(prompts: Sequence[Sequence[int]], room: int) -> tuple[Tensor, Tensor]:
    """Token ids [prompts, width], and which of width + room positions may be seen."""
    width = max(map(len, prompts))
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    seen = torch.ones(len(prompts), width + room, dtype=torch.bool)
    for i, prompt in enumerate(prompts):
        ids[i, width - len(prompt) :] = torch.tensor(prompt)
        seen[i, : width - len(prompt)] = False
    return ids, seen


@torch.inference_mode()
def sample(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    rows: Sequence[int],
    seeds: Sequence[int],
    stops: Sequence[int],
    sampling: Sampling,
) -> list[list[int]]:
    """Token ids that continue `prompts[rows[i]]` from `seeds[i]`, up to the first of `stops`.

    That stop is the last id of its rollout; none means that max_tokens ended it. Each prompt goes
    through the model once. Raises FloatingPointError when the logits are not finite.
    """
    device = model.device
    ids, seen = (t.to(device) for t in pad_left(prompts, sampling.max_tokens))
    width = ids.shape[1]
    place = (seen[:, :width].cumsum(-1) - 1).clamp(min=0)
    cache = new_cache(model.config, sampling.max_tokens)
    forward = _last_logits(model, cache)
    logits = forward(ids, seen[:, :width], place)

    keep = torch.tensor(rows, device=device)
    uniform = uniforms(seeds, sampling.max_tokens).to(device)
    ending = torch.tensor(stops, device=device)
    live = torch.arange(len(rows), device=device)
    drawn = torch.full((len(rows), sampling.max_tokens), -1, device=device)
    done = torch.zeros_like(live, dtype=torch.bool)
    cache.batch_select_indices(keep)
    logits, seen, place = logits[keep], seen[keep], place[keep, -1:]
    for step in range(sampling.max_tokens):
        token = draw(logits, uniform[:, step], sampling)
        drawn[live, step] = token
        done = done | torch.isin(token, ending)
        left = len(done) - int(done.sum())
        if left == 0 or step + 1 == sampling.max_tokens:
            break
        if left <= LIVE_SHARE * len(done):
            keep = (~done).nonzero()[:, 0]
            cache.batch_select_indices(keep)
            live, done, token = live[keep], done[keep], token[keep]
            seen, place, uniform = seen[keep], place[keep], uniform[keep]
        place = place + 1
        logits = forward(token[:, None], seen[:, : width + step + 1], place)
    return [_until(row, stops) for row in drawn.tolist()]


def _last_logits(model: PreTrainedModel, cache: Cache) -> Any:
    """The model as a function of ids, mask and positions to the last position's logits."""
    takes = inspect.signature(model.forward).parameters

    def forward(ids: Tensor, seen: Tensor, place: Tensor) -> Tensor:
        optional = {"position_ids": place, "logits_to_keep": 1}
        output = model(
            input_ids=ids,
            attention_mask=seen,
            past_key_values=cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if name in takes},
        )
        logits: Tensor = output.logits[:, -1]
        return logits

    return forward


def _until(row: list[int], stops: Sequence[int]) -> list[int]:
    """A row of drawn ids without what a finished rollout went on to draw."""
    for i, token in enumerate(row):
        if token in stops:
            return row[: i + 1]
    return row
