"""The options of every engine as `--help` shows them, read from source: nothing is imported."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline import engines

MEANING = re.compile(r"^(?P<name>\w+): (?P<said>.+?)(?=^\w+: |^$|\Z)", re.MULTILINE | re.DOTALL)
INDENT = 42


@dataclass(frozen=True, slots=True)
class Option:
    """A parameter of an engine's `build`."""

    name: str
    kind: str
    """As it is annotated."""
    default: str
    """As Python writes it; empty where it must be given."""
    meaning: str


def manual() -> str:
    """Every engine in a line, and under it its options, each with meaning and default."""
    return "\n".join(line for name in engines.names() for line in [*_lines(name), ""])


def _lines(name: str) -> Iterator[str]:
    about = (ast.get_docstring(_tree(name)) or name).splitlines()[0]
    yield f"--engine.name {name}: {about.removeprefix(f'Engine `{name}`: ')}"
    for option in options(name):
        flag = f"  --engine.{option.name.replace('_', '-')} {option.kind}"
        said = f"default: {option.default}" if option.default else "required"
        yield f"{flag:{INDENT}} {option.meaning} ({said})"


def options(name: str) -> list[Option]:
    """Those of one engine, its dtype left out: that is an option of all."""
    tree = _tree(name)
    (build,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "build")
    said = ast.get_docstring(build) or ""
    meanings = {m["name"]: " ".join(m["said"].split()) for m in MEANING.finditer(said)}
    taken = build.args.args
    defaults = [None] * (len(taken) - len(build.args.defaults)) + build.args.defaults
    return [
        Option(
            one.arg,
            ast.unparse(one.annotation) if one.annotation else "",
            _value(default, tree) if default else "",
            meanings.get(one.arg, ""),
        )
        for one, default in zip(taken, defaults, strict=True)
        if one.arg != "dtype"
    ]


def _value(default: ast.expr, tree: ast.Module) -> str:
    """A default, or what the constant of the module that it names was set to."""
    named = default.id if isinstance(default, ast.Name) else None
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == named:
            return ast.unparse(node.value)
    return ast.unparse(default)


def _tree(name: str) -> ast.Module:
    folder = Path(engines.__file__).parent
    file = folder / f"{name}.py"
    source = file if file.exists() else folder / name / "__init__.py"
    return ast.parse(source.read_text("utf-8"))
