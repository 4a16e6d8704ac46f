"""From a command line and its TOML files to a configuration, or one line that says why not."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from pydantic_config import BaseConfig, ConfigFileError, cli

from pipeline.config.blocks import EVERY, ManyBlocks
from pipeline.config.manual import manual

FILE_BYTES = 2**24

Config = TypeVar("Config", bound=BaseConfig)


def read(cls: type[Config], argv: Sequence[str], *, positional: str = "") -> Config:
    """The configuration that a command line names: `@ file.toml`, then `--key.sub value`.

    positional: the field that a leading word without dashes sets. Raises ConfigFileError.
    """
    words = list(argv)
    if positional and words and not words[0].startswith(("-", "@")):
        words = [f"--{positional}", *words]
    _check_files(words)
    words = [_said_of_every(cls, word) for word in words]
    verb = cls.__name__.removesuffix("Config").lower()
    parse: Callable[..., Config] = cli
    try:
        return parse(cls, args=words, prog=f"onset {verb}", description=cls.__doc__, plain=True)
    except SystemExit:  # after the help
        if "engine" in cls.model_fields:
            print(f"\n{manual()}")
        raise
    except ConfigFileError as error:
        lacks = re.search(rf"^--{positional}\n +Field required", str(error), re.MULTILINE)
        if not (positional and lacks) or "Extra inputs" in str(error):
            raise ConfigFileError(_said(error)) from None
        raise ConfigFileError(
            f"a {positional} is missing: onset {verb} {positional.upper()} ...; "
            f"onset {verb} --help says what it may be"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(f"the configuration cannot be read: {error}") from None


def _said(error: ConfigFileError) -> str:
    """What is wrong where, without the names of classes: `--words: at least 2 (got '1'); ...`."""
    header, _, body = str(error).partition("\n")
    if not header.startswith("Failed to validate"):
        return str(error)
    return re.sub(r"\n +", ": ", body).replace("\n", "; ")


def _said_of_every(cls: type[BaseConfig], word: str) -> str:
    """A flag `--env.task`, where `env` is a list of blocks, as one that is said of each of them."""
    name, dot, rest = word.removeprefix("--").partition(".")
    listed = issubclass(cls, ManyBlocks) and name in cls.lists() and word.startswith("--")
    return f"--{name}{EVERY}{dot}{rest}" if listed and dot else word


def _check_files(words: Sequence[str]) -> None:
    """ConfigFileError for a file after `@` that is no TOML or too large to be written by hand."""
    for word, following in pairwise([*words, ""]):
        name = following if word == "@" else word[1:] if word.startswith("@") else ""
        path = Path(name)
        if not name or not path.exists():
            continue
        if path.suffix != ".toml" or not path.is_file():
            raise ConfigFileError(f"{name} is no .toml file; write the configuration as TOML")
        if path.stat().st_size > FILE_BYTES:
            raise ConfigFileError(
                f"{name} has {path.stat().st_size:,} bytes, {FILE_BYTES:,} at most; a folder of "
                "runs needs one [[runs]] block"
            )
