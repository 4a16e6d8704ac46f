"""Checkpoints in, completions out, through one live vLLM engine."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hackbait.environment import Case
from pipeline.checkpoints.headers import open_regular, read_json
from pipeline.checkpoints.identity import ADAPTER_CONFIG, adapter_fingerprint, fingerprint_files
from pipeline.engines import AnotherArchitecture, EngineDied, EngineError, Item
from pipeline.engines.hf.chat import Chat
from pipeline.engines.hf.chat import read as read_chat
from pipeline.engines.hf.model import architecture, read_config
from pipeline.engines.vllm.adapters import RANKS, batches, modules, room
from pipeline.engines.vllm.asking import Policy, complete
from pipeline.engines.vllm.folders import Reader, refuse_difference, shapes
from pipeline.engines.vllm.live import Live
from pipeline.engines.vllm.probe import answers, difference
from pipeline.engines.vllm.settings import Options, Shape, check_sampling, determinism, on_cpu
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling

LOG = logging.getLogger(__name__)
LARGEST = {"float32": 3.4028234e38, "bfloat16": 3.3895313e38, "float16": 65504.0}
CHECK_BYTES = 2**33
"""Weights up to this size are loaded a second time for the check against a fresh engine."""


class VllmEngine:
    """See `Engine` and `ManyAtOnce`; made by `build`.

    A checkpoint that is refused leaves the one before it loaded.
    """

    def __init__(self, options: Options) -> None:
        self.determinism = determinism(options.dtype)
        self._options = options
        self._reader = Reader(LARGEST[options.dtype])
        self._live: Live | None = None
        self._policy: Policy | None = None
        self._chat: Chat | None = None
        self._config: tuple[bytes, Any] | None = None
        self._built_from = ""
        self._died = ""

    def prefetch(self, checkpoint: Checkpoint) -> None:
        """See `Engine.prefetch`: into the page cache, hashed on the way."""
        self._reader.fingerprint(Path(checkpoint.path))

    def load(self, checkpoint: Checkpoint) -> str:
        """See `Engine.load`. Raises EngineDied when the swap itself went wrong."""
        self._policy = self._load(checkpoint)
        return self._policy.fingerprint

    def generate(
        self, cases: Sequence[Case], seeds: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[list[Completion]]:
        """See `Engine.generate`. `completion_tokens` leaves out the token that stopped it.

        Where prompt and max_tokens exceed the context: text None, error `prompt_too_long`.
        """
        policy, live = self._policy, self._alive()
        if policy is None or live is None or not live.holds(policy.weights, policy.adapter):
            raise EngineError("engine vllm: no checkpoint is loaded")
        check_sampling(sampling)
        return complete(live, [(policy, cases, seeds)], sampling)[0]

    def generate_many(
        self, items: Sequence[Item], sampling: Sampling
    ) -> list[list[list[Completion]]]:
        """See `ManyAtOnce`: adapters on one base in one batch, full checkpoints one by one."""
        check_sampling(sampling)
        done: list[list[list[Completion]]] = []
        for batch in batches(items, 1 if self._options.merge else self._options.max_loras):
            asked = [(self._load(checkpoint), cases, seeds) for checkpoint, cases, seeds in batch]
            live = self._alive()
            done += complete(live, asked, sampling) if live else []
        return done

    def self_check(self, checkpoint: Checkpoint) -> str | None:
        """Load a checkpoint and compare it with a fresh engine of it; why it was not, if so.

        Once a sweep, with a checkpoint other than the first, it finds out whether this vLLM can
        swap weights of this architecture at all. The fresh engine stays, in place of the other.
        Raises EngineDied when they differ, or when no second engine could be started.
        """
        folder = Path(checkpoint.path)
        if checkpoint.kind == "adapter":
            return "adapters stand beside weights that are not swapped"
        if sum(path.stat().st_size for path in fingerprint_files(folder)) > CHECK_BYTES:
            return f"its weights are larger than {CHECK_BYTES / 2**30:.0f} GiB"
        loaded = self.load(checkpoint)
        live = self._alive()
        if live is None or loaded == self._built_from:
            return "the engine was started with these weights; name another checkpoint"
        swapped = answers(live)
        fresh = answers(self._restart(folder, loaded, live.shape))
        found = difference(swapped, fresh, self._options.dtype)
        if found:
            self._died = f"{folder}: swapped in, it answered otherwise than in a fresh engine"
            raise EngineDied(
                f"{self._died} ({found}); this vLLM cannot swap this architecture: take engine hf"
            )
        return None

    def _alive(self) -> Live | None:
        """The live engine, if one was started. Raises EngineDied once this process saw one die.

        Another one in this process would not do: vLLM's engines share more than their memory, and
        one that failed half way leaves the next a torn rotary table (0.32).
        """
        if self._died:
            raise EngineDied(f"engine vllm died, {self._died}; its process is to be replaced")
        if self._live:
            self._live.check()
        return self._live

    def _load(self, checkpoint: Checkpoint) -> Policy:
        """All is checked before anything live is touched."""
        self._alive()
        places = _places(checkpoint)
        adapter = places[0] if checkpoint.kind == "adapter" else None
        home = places[-1] if adapter else places[0]
        config = self._read_config(home)
        self._chat = read_chat(places, config.eos_token_id, self._chat)
        shape = _shape(home, config)
        whole = self._reader.fingerprint(home)
        own, name, merged = "", whole, None
        if adapter:
            changed = modules(adapter, shape.tensors)
            own = self._reader.fingerprint(adapter)
            name = adapter_fingerprint(whole, own, read_json(adapter / ADAPTER_CONFIG))
            if self._options.merge:
                merged = adapter
            else:
                shape = replace(shape, lora=room(adapter, changed, self._rank_limit()))
        live = self._fit(home, whole, shape)
        wanted = name if merged else whole
        if live.weights != wanted:
            live.swap(home, merged, wanted)
        handle = live.adapt(adapter, name) if adapter and not merged else None
        if self._reader.fingerprint(home) != whole or (
            adapter and self._reader.fingerprint(adapter) != own
        ):
            live.forget()
            raise CheckpointError(f"{places[0]}: rewritten while it was loaded; sweep it later")
        return Policy(name, wanted, self._chat, handle)

    def _fit(self, home: Path, whole: str, shape: Shape) -> Live:
        """The live engine where this checkpoint can be put into it, else a new one."""
        live = self._live
        if live and live.shape.architecture == shape.architecture:
            refuse_difference(live.shape.tensors, shape.tensors, home)
            if shape.lora is None or (live.shape.lora and live.shape.lora.covers(shape.lora)):
                return live
            if live.shape.lora:
                shape = replace(shape, lora=shape.lora.with_(live.shape.lora))
        if live and not on_cpu():
            raise AnotherArchitecture(
                f"{home}: needs another vLLM engine than the live one; a new process is to take it"
            )
        if live:
            LOG.info("%s: another architecture or larger adapters, so another engine", home)
        return self._start(home, whole, shape)

    def _start(self, home: Path, whole: str, shape: Shape) -> Live:
        """A new engine in place of the one before it, if any."""
        if self._live:
            before, self._live = self._live, None
            before.close()
        try:
            self._live = Live(home, whole, shape, self._options)
        except EngineDied as error:
            self._died = str(error)
            raise
        self._built_from = whole
        return self._live

    def _restart(self, home: Path, whole: str, shape: Shape) -> Live:
        try:
            return self._start(home, whole, shape)
        except EngineError as error:
            self._died = str(error)
            raise EngineDied(self._died) from error

    def _read_config(self, home: Path) -> Any:
        """The configuration, parsed anew only where its file says something new."""
        path = home / "config.json"
        if not path.exists():
            return read_config(home)  # which says what to do
        with open_regular(path) as file:
            content = file.read()
        if self._config is None or self._config[0] != content:
            self._config = content, read_config(home)
        return self._config[1]

    def _rank_limit(self) -> int:
        return RANKS[-1] if self._options.max_lora_rank is None else self._options.max_lora_rank


def _shape(home: Path, config: Any) -> Shape:
    text = config.get_text_config()
    context = getattr(text, "max_position_embeddings", None)
    tied = bool(getattr(text, "tie_word_embeddings", False))
    known = context if isinstance(context, int) else None
    return Shape(architecture(config), shapes(home, tied), known, tied, None)


def _places(checkpoint: Checkpoint) -> list[Path]:
    """Folders in the order in which a tokenizer is looked for; the base, if any, is last."""
    places = [Path(checkpoint.path)]
    if checkpoint.base and Path(checkpoint.base).is_dir():
        places.append(Path(checkpoint.base))
    elif checkpoint.kind == "adapter":
        raise CheckpointError(
            f"{checkpoint.path}: its base {checkpoint.base or '(not named)'} is no folder here; "
            "set `base` of its run to one"
        )
    return places
