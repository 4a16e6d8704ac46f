"""From chat messages to token ids and back: a checkpoint's tokenizer, template and stops."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from pipeline.checkpoints.headers import open_regular, read_json
from pipeline.records import CheckpointError

TODAY = datetime(2024, 7, 26, tzinfo=UTC)
"""What a template that asks for the date is told, so that prompts do not age."""
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "merges.txt")
SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
TEMPLATE = "chat_template.jinja"


@dataclass(frozen=True, slots=True)
class Chat:
    """How a checkpoint is spoken to."""

    path: str
    tokenizer: Any
    files: str
    """Digest of the files it was made from; equal ones can share a tokenizer."""
    stops: Sequence[int]
    """Token ids that end a completion."""

    def encode(self, conversations: Sequence[list[dict[str, str]]]) -> list[list[int]]:
        """Token ids of each conversation, ready for the assistant's turn. Raises CheckpointError.

        The template alone says which special tokens there are, as in training by TRL.
        """
        with refusing(f"{self.path}: its chat template or tokenizer fails on these messages"):
            texts = self.tokenizer.apply_chat_template(
                conversations,
                tokenize=False,
                add_generation_prompt=True,
                date_string=TODAY.strftime("%d %b %Y"),
                strftime_now=TODAY.strftime,
            )
            encoded = self.tokenizer(texts, add_special_tokens=False, padding=False, verbose=False)
            prompts: list[list[int]] = encoded["input_ids"]
        if not all(prompts):
            raise CheckpointError(f"{self.path}: its chat template renders an empty prompt")
        return prompts

    def decode(self, completions: Sequence[Sequence[int]]) -> list[str]:
        """Texts without special tokens, spaces as they were drawn."""
        texts: list[str] = self.tokenizer.batch_decode(
            completions, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts


def read(places: Sequence[Path], configured: object, known: Chat | None) -> Chat:
    """The first tokenizer and the first template of these folders, `known` reused if it can be.

    A completion ends at the tokenizer's eos and at those of generation_config.json; `configured`
    (config.json's) counts where there are none. Raises CheckpointError.
    """
    path, files = str(places[0]), _digest(places)
    kept = known.tokenizer if known and known.files == files else None
    tokenizer = _tokenizer(places) if kept is None else kept
    stops = {*_generation_stops(places), *_ids(tokenizer.eos_token_id)} or {*_ids(configured)}
    if not stops:
        raise CheckpointError(f"{path}: no eos token; set eos_token in tokenizer_config.json")
    chat = Chat(path, tokenizer, files, sorted(stops))
    if kept is None:
        chat.encode([[{"role": "user", "content": "?"}]])
    return chat


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Whatever a reader of somebody else's file raises is that checkpoint's failure, in a line."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CheckpointError(f"{what}: {lines[0]}") from error


def _tokenizer(places: Sequence[Path]) -> Any:
    spoken = [place for place in places if any((place / name).exists() for name in VOCABULARIES)]
    if not spoken:
        raise CheckpointError(f"{places[0]}: no tokenizer, and no base that has one; set its base")
    tokenizers = [_from_folder(place) for place in spoken]
    templates = [t.chat_template for t in tokenizers if t.chat_template]
    if not templates:
        raise CheckpointError(
            f"{places[0]}: its tokenizer has no chat template; "
            f"put the {TEMPLATE} of its training beside it, or set a base that has one"
        )
    tokenizers[0].chat_template = templates[0]
    return tokenizers[0]


def _from_folder(place: Path) -> Any:
    with refusing(f"{place}: its tokenizer cannot be read"):
        return AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False)


def _digest(places: Sequence[Path]) -> str:
    """Of all that makes a tokenizer, save the padding and truncation it was last used with."""
    digest = hashlib.blake2b(digest_size=16)
    for place in places:
        for name in (*VOCABULARIES, *SETTINGS, TEMPLATE):
            if not (place / name).exists():
                continue
            with open_regular(place / name) as file:
                content = file.read()
            if name == "tokenizer.json":
                content = content[max(0, content.find(b'"added_tokens"')) :]
            digest.update(f"{name} {len(content)} ".encode() + content)
        digest.update(b"/")
    return digest.hexdigest()


def _generation_stops(places: Sequence[Path]) -> list[int]:
    for place in places:
        path = place / "generation_config.json"
        if path.exists():
            return _ids(read_json(path).get("eos_token_id"))
    return []


def _ids(value: object) -> list[int]:
    """One id, a list of them, or none."""
    return [v for v in (value if isinstance(value, list) else [value]) if type(v) is int]
