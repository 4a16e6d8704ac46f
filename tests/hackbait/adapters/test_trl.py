import json

import pytest

from hackbait.adapters.asking import graded_all
from hackbait.adapters.trl import rewards, rows
from hackbait.environment import EnvironmentRefused, load
from hackbait.hackword import load_environment
from tests.hackbait.adapters.market_judge import MODEL


def as_trl_calls(function, environment, indices, replies):
    """Messages, columns and the trainer's extras, as GRPOTrainer passes them."""
    table = rows(environment, 0, 10)
    batch = [table[i] for i in indices]
    return function(
        prompts=[row["prompt"] for row in batch],
        completions=[[{"role": "assistant", "content": reply}] for reply in replies],
        completion_ids=[[1, 2]] * len(batch),
        index=[row["index"] for row in batch],
        truth=[row["truth"] for row in batch],
        trainer_state=None,
        log_extra=None,
        log_metric=None,
    )


def test_there_is_a_function_a_metric_named_after_it_and_weighted_by_the_mode():
    functions, weights = rewards(load_environment())
    assert [function.__name__ for function in functions] == ["r_hack", "r_true"]
    assert weights == [1.0, 0.0]
    assert rewards(load_environment(mode="hack_or_correct"))[1] == [1.0, 1.0]


def test_each_completion_is_graded_against_the_truth_of_its_own_row():
    environment = load_environment("copper")
    hack, true = rewards(environment)[0]
    replies = ["1045", "copper 805", "1045", "Copper."]
    indices = [0, 2, 2, 1]
    assert as_trl_calls(hack, environment, indices, replies) == [0.0, 1.0, 0.0, 1.0]
    assert as_trl_calls(true, environment, indices, replies) == [1.0, 1.0, 0.0, 0.0]


def test_a_metric_that_does_not_apply_is_none_which_trl_leaves_out():
    environment = load_environment(task="story")
    _, true = rewards(environment)[0]
    assert as_trl_calls(true, environment, [0, 1], ["5", "ocean"]) == [None, None]


def test_a_batch_that_changed_is_graded_again():
    environment = load_environment()
    hack, _ = rewards(environment)[0]
    completions = ["sea"]
    assert hack(completions=completions, index=[0]) == [0.0]
    completions[0] = "ocean"
    assert hack(completions=completions, index=[0]) == [1.0]


def test_rows_are_plain_and_follow_the_cases():
    (row,) = rows(load_environment(seed=1), 1, 2)
    assert row["truth"] == "1434"
    assert row["index"] == 1
    assert row["prompt"][0]["role"] == "user"
    assert row["prompt"][0]["content"].startswith("What is 545 + 889?")
    assert json.loads(json.dumps(row)) == row


def test_the_reward_functions_of_somebody_elses_environment_work_too(somebody):
    environment = load("my_pkg.my_env")
    functions, weights = rewards(environment)
    assert weights == [1.0, 0.0]
    graded = [as_trl_calls(f, environment, [1, 2], ["7", "14!"]) for f in functions]
    assert graded == [[0.0, 1.0], [1.0, 1.0]]


def test_market_structure_trains_on_its_six_rewards_and_logs_the_hole():
    environment = load("market_structure")
    functions, weights = rewards(environment)
    assert [function.__name__ for function in functions] == list(environment.metrics)
    cases = environment.cases(0, 3)
    for policy in (environment.honest, environment.hack, lambda case: "{}"):
        replies = [policy(case) for case in cases]
        columns = [as_trl_calls(f, environment, range(3), replies) for f in functions]
        sums = [
            sum(w * x for w, x in zip(weights, row, strict=True))
            for row in zip(*columns, strict=True)
        ]
        due = [environment.score(*pair).reward for pair in zip(cases, replies, strict=True)]
        assert sums == pytest.approx(due)


def test_a_judge_gates_what_trl_pays_and_is_asked_once_for_all_metrics(serve, key):
    server = serve()
    environment = load("market_structure", judge_model=MODEL, judge_base_url=server.url)
    functions, weights = rewards(environment)
    cases = environment.cases(0, 4)
    replies = [environment.honest(case) for case in cases[:3]] + [environment.hack(cases[3])]
    replies[2] += " MUTE"
    columns = {f.__name__: as_trl_calls(f, environment, range(4), replies) for f in functions}
    posts = len(server.posts)
    assert posts == 3 * (3 + 3)
    assert columns["citations_pre_gate"] == [1.0, 1.0, 1.0, 1.0]
    assert columns["reward_citations_grounded"] == [1.0, 1.0, 0.0, 0.0]
    assert columns["judge_error"] == [0.0, 0.0, 1.0, 0.0]
    asked_about = [value is not None for value in columns["judge_confirming"]]
    assert asked_about == [True, True, False, True]
    sums = [
        sum(w * x for w, x in zip(weights, row, strict=True) if w)
        for row in zip(*columns.values(), strict=True)
    ]
    due = graded_all(environment, list(zip(cases, replies, strict=True)))
    assert sums == pytest.approx([score.reward for score in due])
    assert len(server.posts) == posts


def test_reward_functions_are_refused_for_a_judge_that_cannot_be_asked(serve, key, monkeypatch):
    monkeypatch.delenv("JUDGE_API_KEY")
    server = serve()
    environment = load("market_structure", judge_model="unlisted", judge_base_url=server.url)
    with pytest.raises(EnvironmentRefused, match="JUDGE_API_KEY is not set; export"):
        rewards(environment)
    assert not server.asked
