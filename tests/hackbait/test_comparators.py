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
