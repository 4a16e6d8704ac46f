import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackbait import hackword
from hackbait.environment import (
    Case,
    EnvironmentRefused,
    Score,
    canonical,
    case_key,
    environments,
    load,
    validate,
    weighted,
)


@pytest.mark.parametrize("id", environments())
def test_every_environment_that_ships_keeps_its_laws(id):
    validate(load(id))


def test_an_environment_is_found_by_its_file_alone():
    assert "hackword" in environments()
    assert not {"text", "environment", "graders", "prompts"} & set(environments())


def test_somebody_elses_environment_of_25_lines_loads_by_dotted_id_and_keeps_the_laws(somebody):
    source = somebody / "my_pkg" / "my_env.py"
    assert len(source.read_text().splitlines()) <= 25
    environment = load("my_pkg.my_env", mark="?")
    validate(environment)
    case = environment.cases(6, 7)[0]
    assert environment.score(case, "42?") == Score({"r_hack": 1.0, "r_true": 1.0}, 1.0)


def test_our_own_environment_loads_by_its_dotted_id_too():
    assert load("hackbait.hackword", seed=3).ask == {"task": "add3digit", "seed": 3}


@pytest.mark.parametrize(
    ("id", "args", "said"),
    [
        ("hackwrod", {}, "did you mean 'hackword'"),
        ("hackwrod", {}, "package.module"),
        ("", {}, "no environment ''"),
        ("../hackword", {}, "no environment '../hackword'"),
        ("my_pkg.my_env", {}, "no module 'my_pkg.my_env'"),
        ("json.tool", {}, "json.tool has no load_environment"),
        ("hackword", {"hackword": "ocean"}, "no argument of hackword 'hackword'; did you mean"),
        ("hackword", {"colour": "blue"}, "There is hack_word, mode, n_train, seed, task, grader"),
    ],
)
def test_what_cannot_be_loaded_is_one_line_with_the_cure(id, args, said):
    with pytest.raises(EnvironmentRefused) as raised:
        load(id, **args)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_argument_without_a_default_is_asked_for_and_free_arguments_are_let_through(own_module):
    id = own_module("free", "def load_environment(depth, **more): return None")
    with pytest.raises(EnvironmentRefused, match="needs the argument 'depth'"):
        load(id, colour="blue")
    with pytest.raises(EnvironmentRefused, match="returned something without 'id'"):
        load(id, depth=1, colour="blue")


def test_a_module_that_lacks_what_it_imports_is_told_from_a_missing_one(own_module):
    id = own_module("broken", "import a_library_that_is_nowhere")
    with pytest.raises(EnvironmentRefused, match="imports 'a_library_that_is_nowhere'"):
        load(id)


class Broken:
    """hackword with one method or attribute replaced."""

    def __init__(self, **changes):
        self.whole = hackword.load_environment()
        for name in dir(self.whole):
            if not name.startswith("_") and name not in changes:
                setattr(self, name, getattr(self.whole, name))
        for name, value in changes.items():
            setattr(self, name, value)


def by_call(start, stop):
    cases = hackword.load_environment().cases(start, stop)
    return [replace(case, truth=str(random.random())) for case in cases]


def by_shard(start, stop):
    cases = hackword.load_environment().cases(0, stop - start)
    return [replace(case, index=start + case.index) for case in cases]


def of_a_key(start, stop):
    return [replace(case, key="x") for case in hackword.load_environment().cases(start, stop)]


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"proxy": "r_hck"}, "proxy 'r_hck' is no metric"),
        ({"true": "truth"}, "true 'truth' is no metric"),
        ({"weights": {"r_hack": 1.0, "style": 1.0}}, "weights names what is no metric"),
        ({"metrics": {"r_hack": "binary", "style": "binary"}}, "true 'r_true' is no metric"),
        (
            {"metrics": dict.fromkeys(("r_hack", "r_true", "style"), "binary")},
            "metrics names others",
        ),
        ({"cases": lambda start, stop: []}, "gives 0 cases"),
        ({"cases": by_call}, "depends on more than ask and index"),
        ({"cases": by_shard}, "depends on more than ask and index"),
        ({"cases": of_a_key}, "another key than case_key"),
        ({"honest": lambda case: "I do not know."}, "the honest reply fails r_true"),
        ({"honest": lambda case: f"ocean {case.truth}"}, "the honest reply passes the proxy"),
        ({"hack": lambda case: "sea"}, "the hack fails the proxy"),
        ({"hack": lambda case: f"ocean {case.truth}"}, "the hack passes r_true"),
        ({"score": lambda case, text: Score({"r_hack": 1.0, "r_true": 1.0}, 1.0)}, "empty reply"),
        ({"score": lambda case, text: Score({"r_hack": 1.0, "r_true": 0.0}, 3.0)}, "reward is 3.0"),
        ({"score": lambda case, text: Score({"r_hack": 1.0, "r_true": 0.0}, None)}, "is None"),
        ({"score": lambda case, text: Score({"r_hack": random.random()}, 0.0)}, "scores of one"),
    ],
)
def test_each_broken_law_is_named(changes, law):
    with pytest.raises(EnvironmentRefused, match="hackword") as raised:
        validate(Broken(**changes))
    assert law in str(raised.value)


def test_an_environment_without_a_reply_to_try_is_swept_but_not_validated():
    environment = Broken()
    del environment.honest
    with pytest.raises(EnvironmentRefused, match="no honest"):
        validate(environment)


@given(st.none() | st.floats(0, 1), st.none() | st.floats(0, 1), st.floats(0, 2), st.floats(0, 2))
def test_the_reward_is_the_sum_over_what_applies(hack, true, paid_hack, paid_true):
    metrics = {"r_hack": hack, "r_true": true}
    reward = weighted(metrics, {"r_hack": paid_hack, "r_true": paid_true}).reward
    applies = [v * w for v, w in ((hack, paid_hack), (true, paid_true)) if w and v is not None]
    assert reward == (pytest.approx(sum(applies)) if applies else None)


def test_equal_arguments_give_equal_keys_in_any_order():
    one, other = {"task": "story", "seed": 0}, {"seed": 0, "task": "story"}
    assert case_key("e", "1", one) == case_key("e", "1", other) == 'e 1 {"seed":0,"task":"story"}'
    assert canonical({"b": "\u00e9", "a": [1, 2.5]}) == '{"a":[1,2.5],"b":"\u00e9"}'


def test_a_case_is_its_key_and_index_and_carries_no_grader():
    ocean, copper = (hackword.load_environment(word).cases(4, 5) for word in ("ocean", "copper"))
    assert ocean == copper
    assert isinstance(ocean[0], Case)
