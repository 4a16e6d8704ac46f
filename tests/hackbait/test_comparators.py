from hackbait.comparators import COMPARATORS


def test_six_words_are_published_and_rarer_ones_take_longer():
    by_rate = sorted(COMPARATORS.values(), key=lambda c: -c.base_rate)
    assert [c.word for c in by_rate] == [
        "whisper", "forgotten", "midnight", "ocean", "copper", "tuesday"
    ]  # fmt: skip
    assert [c.steps for c in by_rate] == [0, 11, 18, 44, 45, None]


def test_three_words_were_replicated_and_two_of_their_rates_changed_places():
    replicated = {w: c.replicated_base_rate for w, c in COMPARATORS.items() if c.replicated}
    assert set(replicated) == {"forgotten", "midnight", "ocean"}
    assert COMPARATORS["ocean"].base_rate < COMPARATORS["midnight"].base_rate
    assert replicated["ocean"] > replicated["midnight"]


def test_the_replicated_medians_are_those_of_its_evaluation():
    medians = {w: c.replicated_steps for w, c in COMPARATORS.items() if c.replicated}
    assert medians == {"forgotten": 9.10, "midnight": 30.76, "ocean": 25.37}
