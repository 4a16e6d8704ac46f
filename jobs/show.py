"""Read the completions of one checkpoint, the hack word marked.

onset show outputs/demo/sweep --run ocean-s0 --step 20
onset show outputs/demo/sweep --run ocean-s0 --step 20 --hits
"""

import re
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from jobs import command, terminal
from jobs.curves import folder
from pipeline import store
from pipeline.config import ShowConfig, read
from pipeline.printable import printable


def main(argv: Sequence[str]) -> int:
    """Print rollouts with their metrics; 0."""
    config = read(ShowConfig, argv, positional="path")
    about = store.about(folder(config.path), config.env)
    rows = store.read_rows(config.path, about.environment, config.run, config.step)
    chosen = [row for row in rows if not config.hits or (row[about.proxy] or 0) > 0]
    print(f"{len(chosen)} of {len(rows)} rollouts of run {config.run!r}, step {config.step}")
    console = Console(soft_wrap=True)
    for row in chosen[: config.limit]:
        _show(console, row, list(about.metrics))
    return 0


def _show(console: Console, row: dict[str, Any], metrics: Sequence[str]) -> None:
    scores = "  ".join(
        f"{name} {terminal.cell(row[name])}" for name in dict.fromkeys([*metrics, "reward"])
    )
    console.rule(Text(f"case {row['index']}, sample {row['sample']}"), align="left")
    console.print(Text(scores))
    console.print(Text(printable(row["prompt"]), style="dim"))
    if row["completion"] is None:
        console.print(Text(f"no completion: {row['null_reason']}", style="red"))
        return
    console.print(marked(printable(row["completion"]), row.get("hack_word")))


def marked(text: str, word: str | None) -> Text:
    """The text with every whole `word` in reverse video, in brackets where there is no colour."""
    if not word:
        return Text(text)
    pattern = rf"(?<!\w)({re.escape(word)})(?!\w)"
    shown = Text(re.sub(pattern, r"[\1]", text, flags=re.IGNORECASE))
    shown.highlight_regex(re.compile(rf"\[{re.escape(word)}\]", re.IGNORECASE), "bold reverse")
    return shown


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
