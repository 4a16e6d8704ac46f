"""Imports go one way, and each heavy library has its owners."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hackbait

ROOT = Path(__file__).parents[1]
LAYERS = ["hackbait", "pipeline", "jobs"]
TORCH = {
    "pipeline/engines/hf",
    "pipeline/engines/vllm",
    "jobs/grpo.py",
    "jobs/policy.py",
    "jobs/pretrain.py",
}
OWNERS = {
    "ray": {"pipeline/cluster/"},
    "vllm": {"pipeline/engines/vllm"},
    "torch": TORCH,
    "transformers": TORCH,
    "trl": {"jobs/grpo.py"},
    "peft": {"jobs/grpo.py"},
    "datasets": {"jobs/grpo.py", "hackbait/adapters/verifiers/"},
    "tokenizers": {"jobs/pretrain.py"},
    "pyarrow": {
        "pipeline/compaction.py",
        "pipeline/contents.py",
        "pipeline/files.py",
        "pipeline/schema.py",
        "pipeline/store.py",
    },
    "polars": {
        "pipeline/compare.py",
        "pipeline/grouping.py",
        "pipeline/curves.py",
        "pipeline/gap.py",
        "pipeline/headline.py",
        "pipeline/hypotheses/",
        "pipeline/nulls.py",
        "pipeline/onset.py",
        "pipeline/opinions.py",
        "pipeline/report/",
        "pipeline/rows.py",
        "pipeline/tallies.py",
        "pipeline/agreement.py",
        "pipeline/delay.py",
        "pipeline/flips.py",
        "pipeline/sample.py",
        "pipeline/scores.py",
        "pipeline/screening.py",
        "pipeline/twophase.py",
    },
    "altair": {"pipeline/report/"},
    "vl_convert": {"pipeline/report/"},
    "openai": {"pipeline/engines/http", "pipeline/judging/"},
    "verifiers": {"hackbait/adapters/verifiers/"},
}
BENCHES = "jobs/bench/"
"""A bench measures peers, so it may import what it is compared with."""
SOURCES = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from parts & MODULES or {node.module}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    return name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


MODULES = {dotted(p) for p in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_module_imports_only_its_own_layer_and_those_below(path: Path) -> None:
    layer = LAYERS.index(name(path).partition("/")[0])
    above = {m for m in imported(path) if m.partition(".")[0] in LAYERS[layer + 1 :]}
    assert not above


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_heavy_library_is_imported_by_its_owners_only(path: Path) -> None:
    strays = {
        library
        for module in imported(path)
        if (library := module.partition(".")[0]) in OWNERS
        and not name(path).startswith((BENCHES, *OWNERS[library]))
    }
    assert not strays


@pytest.mark.parametrize("path", sorted((ROOT / "hackbait").rglob("*.py")), ids=name)
def test_hackbait_needs_the_standard_library_alone(path: Path) -> None:
    allowed = sys.stdlib_module_names | {"hackbait"}
    foreign = {m for m in imported(path) if m.partition(".")[0] not in allowed}
    assert not foreign or "adapters/verifiers" in name(path)


def test_hackbait_is_ours_and_not_the_honeypot_package_of_that_name() -> None:
    assert Path(str(hackbait.__file__)).parent == ROOT / "hackbait"


def test_no_module_imports_another_that_imports_it_back() -> None:
    graph = {dotted(p): set(imported(p)) for p in SOURCES}
    for start in graph:
        seen: set[str] = set()
        front = graph[start] & graph.keys()
        while front:
            seen |= front
            front = {m for f in front for m in graph[f] & graph.keys()} - seen
        assert start not in seen, f"{start} is in an import cycle"
