"""An engine's options are checked before anything is started."""

import pytest

from pipeline.engines import EngineError, check_options, check_room
from pipeline.records import Sampling


@pytest.mark.parametrize(
    ("engine", "options", "said"),
    [
        ("vllm", {"kv_cache": "2GiB"}, r"kv_cache is int \| None, not '2GiB'"),
        ("vllm", {"merge": 1}, "merge is bool, not 1"),
        ("http", {"base_url": "x", "retries": 2.5}, "retries is int, not 2.5"),
        ("chaos", {"poison": 3}, "poison is .*, not 3"),
    ],
)
def test_an_option_of_another_type_is_refused_by_name_and_value(
    engine: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(EngineError, match=said):
        check_options(engine, options)


def test_whole_numbers_are_shares_and_lists_are_collections() -> None:
    check_options("vllm", {"kv_cache": 2**28, "gpu_memory_utilization": 1, "max_loras": 4})
    check_options("chaos", {"poison": [1, 2], "raises": 0})


def test_a_context_that_holds_no_prompt_beside_the_completion_is_refused_before_anything() -> None:
    said = "max_model_len 256 holds no prompt beside sampling.max_tokens 256"
    with pytest.raises(EngineError, match=said):
        check_room("vllm", {"max_model_len": 256}, Sampling(max_tokens=256))
    check_room("vllm", {"max_model_len": 257}, Sampling(max_tokens=256))
    check_room("vllm", {}, Sampling(max_tokens=2**31 - 1))
