"""Kinds of values that several verbs take: places, folders, and files told by their suffix."""

import warnings
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer, PlainValidator
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
