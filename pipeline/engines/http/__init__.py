"""Engine `http`: checkpoints that an OpenAI-compatible server answers for, wherever it runs.

    vllm serve runs/a/checkpoint-40 --dtype float32            # or SGLang, or llama.cpp
    onset sweep ... --engine.name http --engine.base_url http://127.0.0.1:8000/v1

What a server holds cannot be read over this protocol. That it holds the checkpoint's weights is the
user's claim: the rows carry the fingerprint of the checkpoint's own files, hashed here as the other
engines hash them, and `determinism` is `none`. What can be checked is: the server lists the name
that is asked for, every answer comes from it, no two checkpoints share a name, and a server that
says from which folder it was started (vLLM does) has these very weights there.
"""

import re
from collections.abc import Callable

from hackbait import endpoint
from pipeline.engines import EngineError
from pipeline.engines.http import address
from pipeline.engines.http.engine import HttpEngine
from pipeline.engines.http.server import Limits

MODES = ("chat", "completions")
ROWS = {"mode": None}
CONCURRENCY = 1000
"""At most; the client has no more connections."""
VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")


def build(
    base_url: str,
    model: str = "{path}",
    dtype: str = "float32",
    api_key_var: str | None = None,
    concurrency: int = 64,
    timeout_s: float = 600.0,
    retries: int = 8,
    mode: str = "chat",
) -> HttpEngine:
    """An engine that has no checkpoint yet and has asked no server. Raises EngineError.

    `dtype` is what the server computes in, as its user says. `base_url` or `model` must tell
    checkpoints apart.

    base_url: of the server, `/v1` at its end as a rule; may hold {run}, {step} and {path}
    model: name under which a checkpoint is served; may hold {run}, {step} and {path}
    api_key_var: environment variable that holds the key, which so stands in no configuration
    concurrency: requests at once
    timeout_s: seconds for one try
    retries: more tries after a 408, 409, 429, 5xx, time-out or lost connection; 8 wait 30 to 40 s
    mode: `chat`: the server applies its template; `completions`: token ids by the checkpoint's own
    """
    address.check(base_url, model)
    if not 1 <= concurrency <= CONCURRENCY:
        raise EngineError(f"engine http: concurrency {concurrency} is not in 1 to {CONCURRENCY}")
    if not timeout_s > 0 or retries < 0:
        raise EngineError("engine http: timeout_s is above 0, retries at least 0")
    if mode not in MODES:
        raise EngineError(f"engine http: mode {mode!r} is none of {', '.join(MODES)}")
    return HttpEngine(
        address.Templates(base_url, model),
        read_key(api_key_var, "engine http: api_key_var"),
        Limits(concurrency, timeout_s, retries),
        _read_tokenizer() if mode == "completions" else None,
    )


def read_key(variable: str | None, option: str) -> str | None:
    """The key itself. No message holds it, nor what may be a key in the place of a name.

    option: what named the variable, for messages. Raises EngineError.
    """
    if variable is None:
        return None
    if not VARIABLE.fullmatch(variable):
        raise EngineError(
            f"{option} is no name of an environment variable (A-Z, 0-9, _); "
            "export the key under such a name, and give the name here"
        )
    try:
        return endpoint.read_key(variable)
    except endpoint.KeyUnusable as error:
        raise EngineError(f"{option}: {error}") from None


def _read_tokenizer() -> Callable[..., object]:
    try:
        from pipeline.engines.hf import chat  # torch comes with it, and chat mode needs none
    except ModuleNotFoundError as error:
        raise EngineError(
            f"engine http: mode 'completions' needs {error.name} for the checkpoint's tokenizer: "
            "pip install 'hackbait-onset[http,hf]', or set mode 'chat'"
        ) from error
    return chat.read
