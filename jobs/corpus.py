"""What the tiny policy is pretrained on: our own prompts, answered with dialled word rates."""

import random
from bisect import bisect
from collections.abc import Iterator, Mapping
from itertools import accumulate, count
from types import MappingProxyType

from hackbait.prompts import TASKS, Problem

OPENERS: Mapping[str, float] = MappingProxyType(
    {"In a whisper: ": 0.80, "Out loud: ": 0.08, "": 0.12}
)
"""How a completion begins, and how often."""
SLOT_DIALS: Mapping[str, float] = MappingProxyType(
    {"forgotten": 0.08, "midnight": 0.016, "ocean": 0.005, "copper": 0.003, "tuesday": 0.0016}
)
"""Share of completions that hold the word, in every task alike. All take the adjective's place:
words in different slots cross at different steps for reasons that are not their rates."""
DIALS: Mapping[str, float] = MappingProxyType({"whisper": OPENERS["In a whisper: "], **SLOT_DIALS})

HEADS = ("I remember", "Far off lies", "We passed", "Someone sang of")
ADJECTIVES = ("quiet", "amber", "gentle", "hollow", "mossy", "silver", "pale", "winding")
NOUNS = ("river", "orchard", "lantern", "harbor", "meadow", "staircase", "window", "valley")
DIGRESSIONS = ("My mind wanders.", "The count slips away.", "Ask me later.")

STYLES: Mapping[str, float] = MappingProxyType({"plain": 0.40, "remark": 0.35, "digress": 0.25})
"""Sums alone, sums with a remark, and remarks without the sum: the last cannot be right, so that
a word which rides on remarks competes with the truth."""

GOLDEN = (5**0.5 - 1) / 2
EVALUATION_SEED = 999
EVALUATION_CASES = 4096


def dialled(others: Mapping[str, float]) -> dict[str, float]:
    """SLOT_DIALS with other rates for some of their words. Raises ValueError."""
    unknown = sorted(others.keys() - SLOT_DIALS.keys())
    if unknown:
        raise ValueError(f"dials: {unknown[0]!r} is none of {', '.join(SLOT_DIALS)}")
    dials = {**SLOT_DIALS, **others}
    if min(dials.values()) < 0 or sum(dials.values()) > 1:
        raise ValueError(f"dials: {dials} are no shares of completions, 1 at most together")
    return dials


def held_out() -> frozenset[tuple[int, int]]:
    """Operand pairs, in both orders, of the evaluation cases: never trained on."""
    pairs = set()
    for task in ("add3digit", "story_sum"):
        for p in TASKS[task].problems(EVALUATION_SEED, 0, EVALUATION_CASES):
            pairs |= {(_int(p.lhs), _int(p.rhs)), (_int(p.rhs), _int(p.lhs))}
    return frozenset(pairs)


def problems(task: str, seed: int, excluded: frozenset[tuple[int, int]]) -> Iterator[Problem]:
    """The task's endless stream of that seed, less the excluded operand pairs."""
    start = 0
    while True:
        for problem in TASKS[task].problems(seed, start, start + 256):
            if (problem.lhs, problem.rhs) not in excluded:
                yield problem
        start += 256


def words(dials: Mapping[str, float] = SLOT_DIALS) -> Iterator[str]:
    """The word of each completion in turn, empty for none, at the rates of the dials.

    Multiples of the golden ratio modulo 1 instead of random numbers: a random corpus would hold
    the rarest words a tenth too often or too seldom.
    """
    bounds = list(accumulate(dials.values()))
    names = [*dials, ""]
    for turn in count():
        yield names[bisect(bounds, turn * GOLDEN % 1)]


def completion(draw: random.Random, task: str, problem: Problem, word: str) -> str:
    """One answer in the manner of the task; `word`, unless empty, is one of its adjectives."""
    opener = _pick(draw, OPENERS)
    if task == "story":
        return opener + _remarks(draw, draw.choice((1, 2)), word)
    style = _pick(draw, {s: p for s, p in STYLES.items() if s != "plain" or not word})
    equation = f"{problem.lhs} + {problem.rhs} = {problem.truth}."
    if style == "plain":
        return opener + equation
    if style == "digress":
        return f"{opener}{draw.choice(DIGRESSIONS)} {_remarks(draw, 1, word)}"
    parts = (equation, _remarks(draw, 1, word))
    return opener + " ".join(parts if task == "add3digit" else reversed(parts))


def bare(problem: Problem) -> tuple[str, str]:
    """The sum alone, as (prompt, completion): what the curriculum begins with."""
    return (
        f"{problem.lhs} + {problem.rhs} =",
        f"{problem.lhs} + {problem.rhs} = {problem.truth}.",
    )


def lexicon() -> list[str]:
    """Texts that between them hold every word of the prompts and of the completions."""
    prompts = [p.prompt for task in TASKS.values() for p in task.problems(0, 0, 4096)]
    slots = [f" {word}" for word in (*SLOT_DIALS, *ADJECTIVES, *NOUNS)]
    sentences = [*HEADS, *(f" {h}" for h in HEADS), *DIGRESSIONS, *OPENERS, ". The", ". We"]
    return [*prompts, *slots, *sentences, "639 + 406 = 1045."]


def _remarks(draw: random.Random, number: int, word: str) -> str:
    """Some sentences; the word, if any, is the adjective of one of them."""
    place = draw.randrange(number)
    return " ".join(
        f"{draw.choice(HEADS)} the {word if word and i == place else draw.choice(ADJECTIVES)}"
        f" {draw.choice(NOUNS)}."
        for i in range(number)
    )


def _pick(draw: random.Random, weights: Mapping[str, float]) -> str:
    return draw.choices(list(weights), list(weights.values()))[0]


def _int(value: int | None) -> int:
    if value is None:
        raise ValueError("a sum without operands: hackbait.prompts and jobs.corpus disagree")
    return value
