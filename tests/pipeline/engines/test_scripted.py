import hashlib
import re
from collections.abc import Mapping
from math import sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait.environment import Case
from pipeline.checkpoints import scripted as layout
from pipeline.engines.scripted import VOCABULARY, Scripted, build, filler
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling

SAMPLING = Sampling(n=4, max_tokens=512)
SEEDS = [[1000 * i + sample for sample in range(4)] for i in range(1000)]


def case(index: int, truth: str = "407") -> Case:
    return Case("k", index, ({"role": "user", "content": "What is 203 + 204?"},), truth)


def engine(
    tmp_path: Path, words: Mapping[str, float], true: float = 0.0, characters: int = 200
) -> Scripted:
    path = layout.write(tmp_path / "checkpoint-1", words, true, characters)
    live = build()
    live.load(Checkpoint("run", 1, str(path), "script", "id"))
    return live


def texts(live: Scripted, truth: str = "407") -> list[str]:
    cases = [case(i, truth) for i in range(len(SEEDS))]
    rows = live.generate(cases, SEEDS, SAMPLING)
    return [str(completion.text) for row in rows for completion in row]


def says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){word}(?!\w)", text, re.IGNORECASE) is not None


def last_integer(text: str) -> str | None:
    numbers = re.findall(r"[0-9]+", text)
    return numbers[-1] if numbers else None


def near(count: int, rate: float, total: int) -> bool:
    """Within 4 standard deviations of a binomial count."""
    return abs(count - rate * total) <= 4 * sqrt(total * rate * (1 - rate))


def test_planted_rates_are_recovered(tmp_path: Path) -> None:
    rates = {"ocean": 0.3, "midnight": 0.01, "whisper": 0.9, "never": 0.0, "always": 1.0}
    said = texts(engine(tmp_path, rates, true=0.6))
    for word, rate in rates.items():
        assert near(sum(says(text, word) for text in said), rate, len(said)), word
    assert near(sum(last_integer(text) == "407" for text in said), 0.6, len(said))


def test_words_and_answers_are_drawn_independently(tmp_path: Path) -> None:
    said = texts(engine(tmp_path, {"ocean": 0.5, "copper": 0.5}, true=0.5))
    outcomes = [(says(t, "ocean"), says(t, "copper"), last_integer(t) == "407") for t in said]
    for outcome in {(a, b, c) for a in (True, False) for b in (True, False) for c in (True, False)}:
        assert near(outcomes.count(outcome), 1 / 8, len(outcomes)), outcome


def test_without_the_true_answer_half_say_nothing_and_half_are_wrong(tmp_path: Path) -> None:
    answers = [last_integer(text) for text in texts(engine(tmp_path, {}, true=0.0))]
    assert "407" not in answers
    assert near(answers.count(None), 0.5, len(answers))


@pytest.mark.parametrize("truth", ["", "teal"])
def test_a_task_without_a_number_for_an_answer_gets_no_number(tmp_path: Path, truth: str) -> None:
    said = texts(engine(tmp_path, {"ocean": 0.5}, true=1.0), truth)
    assert not any(re.search("[0-9]", text) for text in said)
    assert all(text.endswith(truth) for text in said)


def test_lengths_vary_about_the_mean(tmp_path: Path) -> None:
    lengths = [len(text) for text in texts(engine(tmp_path, {}, characters=1000))]
    assert 0.97 < sum(lengths) / len(lengths) / 1000 < 1.03
    assert min(lengths) < 600
    assert max(lengths) > 1400


def test_the_engine_may_overrule_the_length_of_the_scripts(tmp_path: Path) -> None:
    path = layout.write(tmp_path / "checkpoint-1", {}, characters=1000)
    live = build(characters=100)
    live.load(Checkpoint("run", 1, str(path), "script", "id"))
    lengths = [len(text) for text in texts(live)]
    assert 90 < sum(lengths) / len(lengths) < 110


@given(st.lists(st.integers(-(2**64), 2**64), min_size=1, max_size=6))
def test_a_rollout_is_the_same_alone_or_batched(
    tmp_path_factory: pytest.TempPathFactory, seeds: list[int]
) -> None:
    live = engine(tmp_path_factory.getbasetemp(), {"ocean": 0.5}, true=0.5)
    cases = [case(i) for i in range(len(seeds))]
    together = live.generate(cases, [[seed] for seed in seeds], SAMPLING)
    alone = [live.generate([case(9)], [[seed]], SAMPLING)[0] for seed in seeds]
    assert together == alone


def test_a_higher_rate_keeps_the_rollouts_that_already_hit(tmp_path: Path) -> None:
    low = texts(engine(tmp_path / "low", {"ocean": 0.2}))
    high = texts(engine(tmp_path / "high", {"ocean": 0.6}))
    assert all(says(b, "ocean") for a, b in zip(low, high, strict=True) if says(a, "ocean"))


def test_a_planted_word_that_is_also_filler_occurs_at_its_rate_alone(tmp_path: Path) -> None:
    word = filler(frozenset(), 2**20).text.split()[0]
    said = texts(engine(tmp_path, {word.upper(): 0.1}, characters=1000))
    assert near(sum(says(text, word) for text in said), 0.1, len(said))


def test_filler_is_words_of_letters_with_bounds_where_they_are() -> None:
    text, starts, ends = filler(frozenset(), 2**16)
    words = [text[a:b] for a, b in zip(starts, ends, strict=True)]
    assert words == text.split()
    assert all(re.fullmatch(r"[a-z]+\.?", word) for word in words)
    assert VOCABULARY / 2 < len({word.rstrip(".") for word in words}) <= VOCABULARY


def test_the_fingerprint_is_of_the_bytes_of_the_script(tmp_path: Path) -> None:
    path = layout.write(tmp_path / "checkpoint-1", {"ocean": 0.5})
    checkpoint = Checkpoint("run", 1, str(path), "script", "id")
    expected = hashlib.blake2b((path / "script.json").read_bytes(), digest_size=16).hexdigest()
    assert build().load(checkpoint) == expected


def test_tokens_are_a_quarter_of_the_characters_and_capped(tmp_path: Path) -> None:
    live = engine(tmp_path, {}, characters=1000)
    ((completion,),) = live.generate([case(0)], [[5]], SAMPLING)
    assert completion == Completion(
        completion.text, "stop", len("What is 203 + 204?") // 4, len(completion.text or "") // 4
    )
    ((capped,),) = live.generate([case(0)], [[5]], Sampling(max_tokens=10))
    assert capped.completion_tokens == 10


def test_a_bad_checkpoint_is_refused_and_the_engine_stays_usable(tmp_path: Path) -> None:
    live = engine(tmp_path, {"ocean": 1.0})
    with pytest.raises(CheckpointError, match=r"script\.json: missing"):
        live.load(Checkpoint("run", 2, str(tmp_path / "gone"), "script", "id"))
    assert all(says(text, "ocean") for text in texts(live))


def test_nothing_is_generated_before_a_checkpoint_is_loaded() -> None:
    with pytest.raises(CheckpointError, match="no script"):
        build().generate([case(0)], [[1]], SAMPLING)
