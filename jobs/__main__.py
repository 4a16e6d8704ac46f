"""onset VERB [@ file.toml] [--key.sub value]

Every verb is a file of this folder; `onset VERB --help` shows its fields.
"""

import ast
import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs import command
from pipeline.engines import EngineError

TRAINING = {"torch", "transformers", "trl", "datasets", "accelerate", "peft"}
"""What the extra `train` installs."""


def verbs() -> dict[str, str]:
    """Name and first docstring line of every file here that has a `main`."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*")):
        source = path / "__init__.py" if path.is_dir() else path
        if path.name.startswith("__") or source.suffix != ".py" or not source.exists():
            continue
        tree = ast.parse(source.read_text("utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the verb that the first word names."""
    if argv is None:
        # An environment of yours lies where you start, as with `python -m`.
        sys.path.insert(0, "")
    words = list(sys.argv[1:] if argv is None else argv)
    known = verbs()
    if not words or words[0] in ("-h", "--help"):
        lines = [f"  {name:10} {about}" for name, about in known.items()]
        print("\n".join([__doc__ or "", *lines]))
        return 0
    verb = words[0]
    if verb not in known:
        near = difflib.get_close_matches(verb, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        print(f"error: verb {verb!r} is none of {', '.join(known)}{hint}", file=sys.stderr)
        return command.REFUSED
    return command.start(lambda rest: run(verb, rest), words[1:])


def run(verb: str, words: Sequence[str]) -> int:
    """The exit code of a known verb; what it needs is imported now.

    EngineError where a library of the trainings is not installed.
    """
    try:
        code: int = importlib.import_module(f"jobs.{verb}").main(words)
    except ModuleNotFoundError as error:
        if error.name not in TRAINING:
            raise
        raise EngineError(
            f"onset {verb} needs {error.name}: pip install 'hackbait-onset[train]'"
        ) from None
    return code


if __name__ == "__main__":
    sys.exit(main())
