"""The help of a verb that has an engine tells every engine's options, and imports none."""

import inspect
import subprocess
import sys

import pytest

from pipeline import engines
from pipeline.config.manual import manual, options

HEAVY = "torch", "vllm", "openai", "transformers", "ray"
LOOK = f"""
import sys
from pipeline.config import SweepConfig, read
try:
    read(SweepConfig, ["--help"])
finally:
    print([name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize("name", engines.names())
def test_every_option_is_told_with_a_meaning_and_the_default_that_it_has(name: str) -> None:
    found = {option.name: option for option in options(name)}
    taken = dict(inspect.signature(engines._module(name).build).parameters)
    assert taken.pop("dtype").default == "float32"
    assert list(found) == list(taken)
    for option in found.values():
        assert option.meaning, f"the docstring of {name}'s build has no line `{option.name}: ...`"
        default = taken[option.name].default
        assert option.default == ("" if default is inspect.Parameter.empty else repr(default))


def test_an_option_is_a_line_with_its_flag_type_meaning_and_default() -> None:
    lines = [" ".join(line.split()) for line in manual().splitlines()]
    assert "--engine.max-loras int adapters at once (default: 8)" in lines
    assert any(line.startswith("--engine.base-url str of the server") for line in lines)
    assert "--engine.name hf: transformers, one live model, checkpoint after checkpoint." in lines


def test_the_help_of_a_sweep_ends_with_the_engines_and_imports_none_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    assert "--engine.kv-cache int | None" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
