"""An engine without a model: texts of pseudo-words in which words and true answers are planted.

Every draw is a hash of the rollout's seed, so that a rollout is the same alone or batched, and a
rate that rises from one checkpoint to the next keeps the rollouts that already hit.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackbait.environment import Case, Message
from pipeline.checkpoints.headers import open_regular
from pipeline.checkpoints.identity import fingerprint_files
from pipeline.checkpoints.scripted import Script, read
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling

Words64 = NDArray[np.uint64]

ROWS = {"characters": None}
FINGERPRINT_BYTES = 16
CHARACTERS_PER_TOKEN = 4
VOCABULARY, SENTENCE_WORDS = 4096, 11
FILLER_CHARACTERS = 2**20
LENGTHS = (0.5, 1.5)
"""Completions are this much of the mean length, uniformly."""
SLACK = 64
"""Characters by which a cut may move to the next word."""
NOTHING, WRONG = 5, 5
"""Of ten rollouts without the true answer, how many say no number and how many a wrong one."""
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


class Filler(NamedTuple):
    """Text without digits, and where its words begin and end."""

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Scripted:
    """Reads a checkpoint's script and acts it out."""

    determinism = "exact"

    def __init__(self, characters: int | None) -> None:
        self.characters = characters
        self.script: Script | None = None

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """Nothing: a script is small."""

    def load(self, checkpoint: Checkpoint) -> str:
        """Take over a script; the hash of its file. Raises CheckpointError."""
        script = read(checkpoint.path)
        data = b""
        for path in fingerprint_files(checkpoint.path):
            with open_regular(path) as file:
                data += file.read()
        self.script = replace(script, characters=self.characters or script.characters)
        return hashlib.blake2b(data, digest_size=FINGERPRINT_BYTES).hexdigest()

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """Completions [case][sample]. Of `sampling`, only max_tokens counts: it caps the count."""
        if self.script is None:
            raise CheckpointError("no script is loaded")
        hashed = mix(np.fromiter((s & 2**64 - 1 for row in seeds for s in row), np.uint64))
        texts = _texts(self.script, hashed)
        answers = iter(_answers(hashed, self.script.true))
        rows = []
        for case, row in zip(cases, seeds, strict=True):
            tails, prompt_tokens = _tails(case.truth), _tokens(sum(map(_length, case.messages)))
            rows.append(
                [
                    _completion(next(texts) + tails[next(answers)], prompt_tokens, sampling)
                    for _ in row
                ]
            )
        return rows


def build(dtype: str = "float32", characters: int | None = None) -> Scripted:
    """An engine that has no script yet; no dtype matters to it.

    characters: mean length of completions, instead of what scripts say
    """
    return Scripted(characters)


def mix(values: Words64) -> Words64:
    """Steele, Lea and Flood's SplitMix64 (2014): 64 bits that look unrelated to the ones given."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def uniform(hashed: Words64, draw: str) -> NDArray[np.float64]:
    """A number in [0, 1) for each hashed seed, independent between draws of different names."""
    key = int.from_bytes(hashlib.blake2b(draw.encode(), digest_size=8).digest(), "big")
    return (mix(hashed ^ np.uint64(key)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=8)
def filler(excluded: frozenset[str], characters: int) -> Filler:
    """Sentences of pseudo-words of three or four syllables, none of the excluded among them."""
    syllables = mix(np.arange(VOCABULARY * 4, dtype=np.uint64)) % np.uint64(len(SYLLABLES))
    spelled = [SYLLABLES[i] for i in syllables.tolist()]
    words = ["".join(spelled[4 * i : 4 * i + 3 + i % 2]) for i in range(VOCABULARY)]
    words = [word for word in words if word not in excluded]
    picks = mix(np.arange(characters // 6, dtype=np.uint64) + np.uint64(2**32))
    chosen = [words[i] for i in (picks % np.uint64(len(words))).tolist()]
    chosen[SENTENCE_WORDS - 1 :: SENTENCE_WORDS] = [
        f"{word}." for word in chosen[SENTENCE_WORDS - 1 :: SENTENCE_WORDS]
    ]
    ends = np.cumsum([len(word) + 1 for word in chosen]) - 1
    return Filler(" ".join(chosen), np.concatenate([[0], ends[:-1] + 1]), ends)


def _texts(script: Script, hashed: Words64) -> Iterator[str]:
    """Filler with the planted words of each rollout at a place of its own in it."""
    size = max(FILLER_CHARACTERS, 4 * script.characters)
    text, starts, ends = filler(frozenset(word.casefold() for word in script.words), size)
    low, high = LENGTHS
    length = script.characters * (low + (high - low) * uniform(hashed, "length"))
    last = ends[-1] - high * script.characters - SLACK
    begin = starts[np.searchsorted(starts, last * uniform(hashed, "begin"))]
    end = ends[np.searchsorted(ends, begin + length)]
    inside = begin + length * uniform(hashed, "place")
    place = starts[np.searchsorted(starts, inside, side="right") - 1]
    masks = _masks(hashed, script.words)
    planted = {mask: _planted(mask, script.words) for mask in set(masks)}
    for a, b, c, mask in zip(begin.tolist(), place.tolist(), end.tolist(), masks, strict=True):
        yield f"{text[a:b]}{planted[mask]}{text[b:c]}"


def _masks(hashed: Words64, words: Mapping[str, float]) -> list[int]:
    """Bit j of a rollout's mask: whether word j is planted."""
    masks = np.zeros(len(hashed), np.int64)
    for j, (word, rate) in enumerate(words.items()):
        masks |= (uniform(hashed, f"word {word}") < rate).astype(np.int64) << j
    listed: list[int] = masks.tolist()
    return listed


def _planted(mask: int, words: Mapping[str, float]) -> str:
    return "".join(f"{word} " for j, word in enumerate(words) if mask >> j & 1)


def _answers(hashed: Words64, true: float) -> list[int]:
    """Index into `_tails` for each rollout."""
    otherwise = 1 + (uniform(hashed, "otherwise") * (NOTHING + WRONG)).astype(np.int64)
    chosen: list[int] = np.where(uniform(hashed, "true") < true, 0, otherwise).tolist()
    return chosen


def _tails(truth: str) -> list[str]:
    """How a rollout may end: the true answer, then nothing, then wrong ones."""
    if not truth:
        return [""] * (1 + NOTHING + WRONG)
    if not re.fullmatch("-?[0-9]{1,18}", truth):
        return [f" {truth}", *[""] * (NOTHING + WRONG)]
    wrong = [f" {int(truth) + 1 + more}" for more in range(WRONG)]
    return [f" {truth}", *[""] * NOTHING, *wrong]


def _completion(text: str, prompt_tokens: int, sampling: Sampling) -> Completion:
    tokens = min(_tokens(len(text)), sampling.max_tokens)
    return Completion(text, "stop", prompt_tokens, tokens)


def _length(message: Message) -> int:
    return len(message["content"])


def _tokens(characters: int) -> int:
    return characters // CHARACTERS_PER_TOKEN
