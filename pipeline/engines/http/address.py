"""Where a checkpoint is served and under which name, from templates that a person wrote."""

from dataclasses import dataclass
from string import Formatter
from urllib.parse import quote

from hackbait.endpoint import flaw
from pipeline.engines import EngineError
from pipeline.records import Checkpoint, CheckpointError

NAMES = ("run", "step", "path")
TELLING = {"step", "path"}
"""Placeholders that differ between the checkpoints of a run."""
SAMPLE = Checkpoint("run", 0, "path", "full", "")


@dataclass(frozen=True, slots=True)
class Address:
    """A server and the name it is to know the checkpoint by."""

    url: str
    model: str


@dataclass(frozen=True, slots=True)
class Templates:
    """Texts with `{run}`, `{step}` and `{path}` in them, as `check` let them pass."""

    base_url: str
    model: str

    def fill(self, checkpoint: Checkpoint) -> Address:
        """The address of one checkpoint, its parts percent-encoded in the URL.

        Raises CheckpointError where that gives no URL.
        """
        run, step, path = checkpoint.run, checkpoint.step, checkpoint.path
        model = self.model.format(run=run, step=step, path=path)
        try:
            url = self.base_url.format(run=quote(run, safe=""), step=step, path=quote(path))
            model.encode()
        except UnicodeEncodeError:
            raise CheckpointError(f"{path!r}: its name is no Unicode text; rename it") from None
        if why := flaw(url):
            raise CheckpointError(
                f"{path}: base_url {url!r} {why}; rename the run, or leave it out"
            )
        return Address(url, model)


def check(base_url: str, model: str) -> None:
    """Raise EngineError unless every checkpoint gets an address of its own from these."""
    used = {*_placeholders("base_url", base_url), *_placeholders("model", model)}
    if not used & TELLING:
        raise EngineError(
            "engine http: neither base_url nor model holds {step} or {path}, so that one model "
            "would answer for every checkpoint; serve each under a name of its own"
        )
    try:
        Templates(base_url, model).fill(SAMPLE)
    except (CheckpointError, ValueError):
        # the text itself may hold a password
        raise EngineError(
            "engine http: base_url is no plain http:// or https:// address such as "
            "http://127.0.0.1:8000/v1, or a format after {step: is none; a key is named by "
            "api_key_var and stands in no URL"
        ) from None


def _placeholders(option: str, template: str) -> set[str]:
    try:
        fields = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
    except ValueError:
        raise EngineError(f"engine http: {option} has a brace without its other one") from None
    if strange := fields - {*NAMES}:
        raise EngineError(
            f"engine http: {option} holds {{{min(strange)}}}; "
            f"there are {', '.join(f'{{{name}}}' for name in NAMES)}"
        )
    return fields
