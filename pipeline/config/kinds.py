"""Kinds of values that several verbs take: places, folders, and files told by their suffix."""

import inspect
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    PlainSerializer,
    PlainValidator,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic_config import BaseConfig

from pipeline.places import Where, where

INT32 = 2**31 - 1
"""Rows hold indices, samples and counts of tokens as int32."""

Scalar = str | int | float | bool


def _no_file(path: Path) -> Path:
    """A folder, or one that can be made."""
    nearest = next((place for place in (path, *path.parents) if place.exists()), path)
    if nearest.exists() and not nearest.is_dir():
        raise ValueError(f"{nearest} is a file; give a folder")
    return path


def _ends_with(suffix: str) -> AfterValidator:
    """What is written is told by the name alone, so another name would lie."""

    def check(path: Path) -> Path:
        if path.suffix.lower() != suffix:
            raise ValueError(f"{path} would hold {suffix[1:]}; give a name that ends in {suffix}")
        return path

    return AfterValidator(check)


def _address(text: str) -> str:
    """The text as it is, once it is known to hold no credentials."""
    where(text)
    return text


def _can_be_written(place: Where) -> Where:
    return _no_file(place) if isinstance(place, Path) else place


def as_json(value: Any) -> Any:
    """A list or a table that a command line can only write as a text, read as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def spelled(options: Mapping[str, Any], build: Callable[..., Any]) -> dict[str, Any]:
    """Options of a command line as TOML says them: `16` is a number where `build` takes one.

    A text stays where texts are taken, and where it spells nothing that is.
    """
    wanted = _parameters(build)
    return {
        name: _spelled(value, wanted[name]) if isinstance(value, str) and name in wanted else value
        for name, value in options.items()
    }


def _parameters(build: Callable[..., Any]) -> dict[str, Any]:
    """The type of each parameter; of one that says none, that of its default."""
    try:
        taken = inspect.signature(build, eval_str=True).parameters
    except NameError:  # an annotation that only a type checker can read
        taken = inspect.signature(build).parameters
    found = {}
    for name, parameter in taken.items():
        if parameter.annotation is not parameter.empty:
            found[name] = parameter.annotation
        elif isinstance(parameter.default, Scalar):
            found[name] = type(parameter.default)
    return found


def _spelled(text: str, wanted: Any) -> Any:
    try:
        takes = TypeAdapter(wanted)
        for value in (text, *_of_toml(text)):
            if _is_of(takes, value):
                return value
    except (PydanticUserError, NameError):  # a type that nobody writes on a command line
        pass
    return text


def _is_of(takes: TypeAdapter[Any], value: object) -> bool:
    try:
        takes.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _of_toml(text: str) -> list[Any]:
    """`16`, `0.5`, `true` or `[1, 2]` as a TOML file would say it; nothing for other text."""
    try:
        return [tomllib.loads(f"value = {text.lower()}")["value"]]
    except (ValueError, RecursionError):
        return []


Place = Annotated[Where, PlainValidator(where), PlainSerializer(str, return_type=str)]
"""A local path, or one on an object store."""
Address = Annotated[str, AfterValidator(_address)]
"""The same as it was written; a hub name is one too."""
Output = Annotated[Place, AfterValidator(_can_be_written)]
OutputFolder = Annotated[Path, AfterValidator(_no_file)]
ParquetFile = Annotated[Path, _ends_with(".parquet")]
PngFile = Annotated[Path, _ends_with(".png")]


with warnings.catch_warnings():
    # pydantic warns that the field hides BaseModel.json, which it has deprecated itself.
    warnings.simplefilter("ignore", UserWarning)

    class Printed(BaseConfig):
        """A verb that prints a table."""

        json: bool = False  # type: ignore[assignment]
        """Print JSON."""
