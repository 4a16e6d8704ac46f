"""The scripted policy: `checkpoint-N/script.json` plants the rates of words and true answers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.checkpoints.folder import Folder, Found
from pipeline.checkpoints.headers import read_json
from pipeline.checkpoints.identity import SCRIPT
from pipeline.records import CheckpointError

NAME = re.compile(r"checkpoint-(0|[1-9][0-9]{0,8})")
WORDS_LIMIT = 60
WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Script:
    """Rates are probabilities per rollout."""

    words: Mapping[str, float]
    true: float
    characters: int
    """Mean length of a completion."""


def find(folder: Folder, run: str) -> Iterator[Found]:
    """Numbered folders that hold a script, and the script that `folder` itself holds (step 0)."""
    for name in folder.folders:
        match = NAME.fullmatch(name)
        if match and SCRIPT in folder.enter(name).files:
            yield _judge(folder.enter(name), run, int(match[1]))
    if SCRIPT in folder.files:
        yield _judge(folder, run, 0)


def _judge(folder: Folder, run: str, step: int) -> Found:
    why = ""
    try:
        read(folder.path)
    except CheckpointError as error:
        why = str(error).replace(f"{folder.path}/", "")
    return Found(run, step, "script", folder.path, "skipped" if why else "ok", why)


def read(path: Path | str) -> Script:
    """The script of a checkpoint folder. Raises CheckpointError."""
    file = Path(path) / SCRIPT
    if not file.exists():
        raise CheckpointError(
            f"{file}: missing; engine 'scripted' plays scripts, not weights: write one "
            "({\"words\": {\"ocean\": 0.5}}), or choose engine 'hf' or 'vllm'"
        )
    said = read_json(file)
    script = Script(said.get("words", {}), said.get("true", 0.0), said.get("characters", 1000))
    problem = _problem(script, said.keys() - {"words", "true", "characters"})
    if problem:
        raise CheckpointError(f"{file}: {problem}")
    return script


def write(
    path: Path | str, words: Mapping[str, float], true: float = 0.0, characters: int = 1000
) -> Path:
    """Write a checkpoint folder that plants these rates; its path. Raises CheckpointError."""
    folder = Path(path)
    problem = _problem(Script(dict(words), true, characters), set())
    if problem:
        raise CheckpointError(f"{folder}: {problem}")
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f".{SCRIPT}"
    script = {"words": dict(words), "true": true, "characters": characters}
    staged.write_text(json.dumps(script, indent=1) + "\n", encoding="utf-8")
    staged.replace(folder / SCRIPT)
    return folder


def _problem(script: Script, unknown: set[str]) -> str:
    """What is wrong with a script; empty for a sound one."""
    if unknown:
        return f"unknown key {sorted(unknown)[0]!r}; there are words, true, characters"
    if not isinstance(script.words, dict):
        return 'words is no table; write {"ocean": 0.5}'
    bad = [word for word in script.words if not WORD.fullmatch(word)]
    if bad or len({word.casefold() for word in script.words}) < len(script.words):
        return f"words {sorted(script.words)} are not distinct single words of letters"
    if len(script.words) > WORDS_LIMIT:
        return f"{len(script.words)} words, {WORDS_LIMIT} at most"
    for name, rate in [*script.words.items(), ("true", script.true)]:
        if not (type(rate) in (int, float) and 0 <= rate <= 1):
            return f"{name} = {rate!r} is no rate from 0 to 1"
    if type(script.characters) is not int or not 1 <= script.characters <= 1_000_000:
        return f"characters = {script.characters!r} is no length from 1 to 1,000,000"
    return ""
