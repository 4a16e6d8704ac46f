"""Against a real server on 127.0.0.1 that speaks the protocol, and misbehaves as it is told to."""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hackbait.environment import Case
from pipeline import engines
from pipeline.engines import EngineBusy
from pipeline.engines.http import build, claim
from pipeline.engines.http.engine import HttpEngine
from pipeline.records import Checkpoint, CheckpointError, Completion, Sampling
from tests.pipeline.openai_server import Answer, Asked, Reply, Server, refusing, said

POLICY = Path(__file__).parents[4] / "hackbait/policy"
KEY = "sk-Sesame/0pen=="
SAMPLING = Sampling(n=2, max_tokens=16)


def echo(asked: Asked) -> str:
    """A text that tells which request it answers."""
    return f"{asked.body['messages'][-1]['content']} {asked.body['seed']}"


def honest(asked: Asked) -> Reply:
    return Reply(said(asked, echo(asked)))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """A server that lists `names` and answers POSTs as told."""
    servers = []

    def new(
        answer: Answer = honest, names: Sequence[str] = ("policy-3",), root: str | None = None
    ) -> Server:
        listing = {"object": "list", "data": [{"id": n, "root": root} for n in names]}
        servers.append(Server(lambda a: Reply(listing) if a.method == "GET" else answer(a)))
        return servers[-1]

    yield new
    for server in servers:
        server.close()


Serve = Callable[..., Server]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Step 3 of a run; its weights are any bytes."""
    return new_checkpoint(tmp_path, 3)


def new_checkpoint(place: Path, step: int, run: str = "run") -> Checkpoint:
    folder = place / run / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(f"weights of {run} {step}".encode())
    return Checkpoint(run, step, str(folder), "full", "")


def asking(count: int = 1) -> tuple[list[Case], list[list[int]]]:
    """Cases, and two seeds of 63 bits for each."""
    cases = [
        Case("k", i, ({"role": "user", "content": f"What is {i}?"},), "") for i in range(count)
    ]
    return cases, [[2**63 - 1 - 2 * i, 2**63 - 2 - 2 * i] for i in range(count)]


def loaded(server: Server, checkpoint: Checkpoint, **options: Any) -> HttpEngine:
    """An engine that tries a second time at most."""
    engine = build(server.url, **{"model": "policy-{step}", "retries": 1, **options})
    engine.load(checkpoint)
    return engine


def one(server: Server, checkpoint: Checkpoint, **options: Any) -> Completion:
    """What becomes of one rollout."""
    cases, seeds = asking()
    engine = loaded(server, checkpoint, **options)
    return engine.generate(cases, [seeds[0][:1]], SAMPLING)[0][0]


def test_every_rollout_comes_back_in_its_place_whatever_order_the_server_answers_in(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    rng = random.Random(0)
    server = serve(lambda asked: Reply(said(asked, echo(asked)), after=rng.random() / 50))
    cases, seeds = asking(40)
    rows = loaded(server, checkpoint, concurrency=16).generate(cases, seeds, SAMPLING)
    assert [[c.text for c in row] for row in rows] == [
        [f"{case.messages[0]['content']} {seed}" for seed in own]
        for case, own in zip(cases, seeds, strict=True)
    ]
    assert len(server.posts) == 80


@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_more_requests_are_under_way_than_allowed_and_all_of_those_are(
    serve: Serve, checkpoint: Checkpoint, concurrency: int
) -> None:
    server = serve(lambda asked: Reply(said(asked, "so"), after=0.1))
    engine = loaded(server, checkpoint, concurrency=concurrency)
    engine.generate(*asking(5), SAMPLING)
    assert server.most_at_once == concurrency
    assert len(server.posts) == 10


def test_a_request_says_how_to_draw_so_that_no_default_of_the_server_counts(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    server = serve()
    cases, seeds = asking()
    loaded(server, checkpoint).generate(cases, [seeds[0][:1]], Sampling(temperature=0.7, top_p=0.9))
    (asked,) = server.posts
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "policy-3",
        "messages": [{"role": "user", "content": "What is 0?"}],
        "chat_template_kwargs": {"date_string": "26 Jul 2024"},
        "n": 1,
        "stream": False,
        "seed": 2**63 - 1,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": -1,
        "max_tokens": 256,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


def test_no_cases_are_no_requests(serve: Serve, checkpoint: Checkpoint) -> None:
    server = serve()
    assert loaded(server, checkpoint).generate([], [], SAMPLING) == []
    assert server.posts == []


def test_a_full_queue_is_waited_for_as_long_as_the_server_says(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    def busy(asked: Asked) -> Reply:
        full = Reply(b"{}", 429, {"retry-after": "0.05"})
        return full if asked.before < 3 else honest(asked)

    server = serve(busy)
    cases, seeds = asking(3)
    rows = loaded(server, checkpoint, retries=3).generate(cases, seeds, SAMPLING)
    assert [c.text for row in rows for c in row] == [
        f"What is {i}? {seed}" for i, own in enumerate(seeds) for seed in own
    ]
    assert len(server.posts) == 4 * 6


PASSING = {
    "500": lambda asked: refusing(500),
    "503": lambda asked: refusing(503),
    "408": lambda asked: refusing(408),
    "dropped": lambda asked: Reply(broken="dropped"),
    "cut": lambda asked: Reply(said(asked, "half of this"), broken="cut"),
    "slow": lambda asked: Reply(said(asked, "late"), after=9),
    "torn JSON": lambda asked: Reply(b'{"choices": [{"finish'),
    "a page": lambda asked: Reply(b"<html>wait</html>", headers={"content-type": "text/html"}),
    "an error said to be none": lambda asked: Reply({"error": {"message": "overloaded"}}),
    "aborted": lambda asked: Reply(said(asked, "half of th", "abort")),
}


def test_what_passes_is_tried_again(serve: Serve, checkpoint: Checkpoint) -> None:
    failing = list(PASSING.values())

    def first_failing(asked: Asked) -> Reply:
        which = int(asked.body["messages"][0]["content"][8:-1])
        return honest(asked) if asked.before else failing[which](asked)

    server = serve(first_failing)
    cases, seeds = asking(len(PASSING))
    engine = loaded(server, checkpoint, timeout_s=2)
    rows = engine.generate(cases, [own[:1] for own in seeds], SAMPLING)
    assert [c.text for row in rows for c in row] == [
        f"What is {i}? {own[0]}" for i, own in enumerate(seeds)
    ]
    tries = Counter(asked.body["seed"] for asked in server.posts)
    assert set(tries.values()) == {2}


@pytest.mark.parametrize("failing", PASSING.values(), ids=PASSING)
def test_what_does_not_pass_is_no_row(
    serve: Serve, checkpoint: Checkpoint, failing: Answer
) -> None:
    server = serve(failing)
    with pytest.raises(EngineBusy, match=r"chat/completions.* once") as told:
        one(server, checkpoint, retries=0, timeout_s=2)
    assert "\n" not in str(told.value)
    assert len(server.posts) == 1


def test_one_rollout_that_is_owed_keeps_all_others_from_being_rows(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    server = serve(lambda a: refusing(500) if a.body["seed"] % 10 == 1 else honest(a))
    with pytest.raises(EngineBusy):
        loaded(server, checkpoint, retries=0).generate(*asking(10), SAMPLING)


LONG = {
    "vLLM": "This model's maximum context length is 64 tokens. However, you requested 16 output "
    "tokens and your prompt contains 77 input tokens.",
    "SGLang": "The input (77 tokens) is longer than the model's context length (64 tokens).",
    "SGLang, both": "Requested token count exceeds the model's maximum context length of 64.",
    "llama.cpp": "request (77 tokens) exceeds the available context size (64 tokens)",
}


@pytest.mark.parametrize("message", LONG.values(), ids=LONG)
def test_a_prompt_beyond_the_context_is_a_null_and_the_others_are_rows(
    serve: Serve, checkpoint: Checkpoint, message: str
) -> None:
    def answer(asked: Asked) -> Reply:
        return refusing(400, message) if "What is 1?" in echo(asked) else honest(asked)

    rows = loaded(serve(answer), checkpoint).generate(*asking(3), SAMPLING)
    too_long = Completion(None, None, None, None, "prompt_too_long")
    assert rows[1] == [too_long, too_long]
    assert all(c.error is None and c.text for row in (rows[0], rows[2]) for c in row)


def test_a_refusal_and_a_filter_are_nulls_and_reasoning_alone_is_an_empty_text(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    def answer(asked: Asked) -> Reply:
        return [
            Reply(said(asked, None, refusal="I will not")),
            Reply(said(asked, "Once", "content_filter")),
            Reply(said(asked, None, reasoning_content="hm")),
            Reply(said(asked, None, "length", 16, reasoning="hm, hm")),
        ][int(echo(asked)[8])]

    cases, seeds = asking(4)
    rows = loaded(serve(answer), checkpoint).generate(cases, [s[:1] for s in seeds], SAMPLING)
    assert [row[0] for row in rows] == [
        Completion(None, None, 7, None, "refused"),
        Completion(None, None, 7, None, "content_filter"),
        Completion("", "stop", 7, 3, None, "hm"),
        Completion("", "length", 7, 16, None, "hm, hm"),
    ]


def test_a_request_that_is_refused_for_good_is_the_checkpoints_failure_and_asked_once(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    server = serve(lambda asked: refusing(400, "top_k is\nnot known here"))
    with pytest.raises(CheckpointError, match=r"status 400: top_k is not known here$"):
        one(server, checkpoint, retries=5)
    assert len(server.posts) == 1


def test_a_name_that_is_not_served_is_refused_with_those_that_are(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    server = serve(names=[f"policy-{i}" for i in range(10, 21)])
    with pytest.raises(
        CheckpointError, match=r"serves no 'policy-3', only 'policy-10', .* 3 more;"
    ):
        loaded(server, checkpoint)
    with pytest.raises(CheckpointError, match="only nothing"):
        loaded(serve(names=[]), checkpoint)


def test_an_engine_that_could_not_load_one_checkpoint_loads_the_next(
    serve: Serve, tmp_path: Path
) -> None:
    good, absent = new_checkpoint(tmp_path, 3), new_checkpoint(tmp_path, 4)
    engine = loaded(serve(), good)
    with pytest.raises(CheckpointError):
        engine.load(absent)
    assert engine.load(good) == claim.fingerprint(good)


def test_the_default_name_is_the_path_as_vllm_serve_has_it(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    server = serve(names=[checkpoint.path])
    assert one(server, checkpoint, model="{path}").text == f"What is 0? {2**63 - 1}"


def test_each_checkpoint_can_have_a_server_of_its_own(serve: Serve, tmp_path: Path) -> None:
    server = serve(names=["policy"])
    engine = build(f"{server.url}/{{run}}/{{step}}", model="policy")
    engine.load(new_checkpoint(tmp_path, 3, "a run"))
    engine.load(new_checkpoint(tmp_path, 4, "a run"))
    paths = [asked.path for asked in server.asked]
    assert paths == ["/v1/a%20run/3/models", "/v1/a%20run/4/models"]


def test_another_model_that_answers_is_refused_and_an_alias_of_the_same_is_not(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    def other(asked: Asked) -> Reply:
        return Reply(said(asked, "so") | {"model": "base"})

    with pytest.raises(CheckpointError, match="'policy-3' was asked and 'base' answered"):
        one(serve(other, names=["base", "policy-3"]), checkpoint)
    aliases = serve(other, names=["base", "policy-3"], root="org/model")
    assert one(aliases, checkpoint).text == "so"


def test_two_checkpoints_cannot_have_one_name_unless_their_weights_are_equal(
    serve: Serve, tmp_path: Path
) -> None:
    first, second = new_checkpoint(tmp_path, 3, "a"), new_checkpoint(tmp_path, 3, "b")
    engine = loaded(serve(), first)
    with pytest.raises(CheckpointError, match=r"other weights already; put \{run\}"):
        engine.load(second)
    shutil.copy(Path(first.path, "model.safetensors"), second.path)
    assert engine.load(second) == engine.load(first)


def test_a_server_that_was_started_from_other_weights_is_refused(
    serve: Serve, tmp_path: Path
) -> None:
    mine, stale = new_checkpoint(tmp_path, 3), new_checkpoint(tmp_path, 2)
    with pytest.raises(CheckpointError, match="checkpoint-2 as 'policy-3', and that holds other"):
        loaded(serve(root=stale.path), mine)
    copied = shutil.copytree(mine.path, tmp_path / "copy")
    for root in (mine.path, str(copied), "/not/on/this/machine", "org/model"):
        loaded(serve(root=root), mine)


def test_a_server_that_is_no_such_server_is_refused_at_load(
    serve: Serve, checkpoint: Checkpoint
) -> None:
    missing = Server(lambda asked: refusing(404, "Not Found"))
    try:
        with pytest.raises(CheckpointError, match="404: Not Found; base_url ends in /v1"):
            loaded(missing, checkpoint)
    finally:
        missing.close()
    with pytest.raises(EngineBusy, match="/models: no connection, or one that broke, once"):
        loaded(missing, checkpoint, retries=0)


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_lets_nobody_in_is_refused_with_the_cure(
    serve: Serve, checkpoint: Checkpoint, status: int
) -> None:
    with pytest.raises(CheckpointError, match=f"{status}; let api_key_var name"):
        one(serve(lambda asked: refusing(status)), checkpoint)


def test_the_key_goes_to_the_server_and_into_no_message(
    serve: Serve, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)

    def telling(asked: Asked) -> Reply:
        status = int(asked.body["messages"][0]["content"])
        return refusing(status, f"bad: {asked.headers['authorization']}")

    server = serve(telling)
    engine = loaded(server, checkpoint, api_key_var="SERVER_KEY", retries=0)
    for status in (400, 401, 403, 404, 429, 500):
        case = Case("k", 0, ({"role": "user", "content": str(status)},), "")
        with pytest.raises((CheckpointError, EngineBusy), match=str(status)) as told:
            engine.generate([case], [[1]], SAMPLING)
        assert KEY not in str(told.value)
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}


def test_a_key_that_was_exported_for_another_server_is_not_sent(
    serve: Serve, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    server = serve()
    assert one(server, checkpoint).error is None
    assert not any(KEY in str(asked.headers) for asked in server.asked)


def test_token_ids_of_the_checkpoints_own_template_are_sent_where_asked_for(serve: Serve) -> None:
    def answer(asked: Asked) -> Reply:
        count = len(asked.body["prompt"])
        if count > 8:
            return refusing(400, "the maximum context length is 24")
        choice = {"text": "Tuesday", "finish_reason": "length"}
        usage = {"prompt_tokens": count, "completion_tokens": 16}
        return Reply({"model": "policy", "choices": [choice], "usage": usage})

    server = serve(answer, names=["policy"])
    engine = build(f"{server.url}/{{step}}", model="policy", mode="completions")
    engine.load(Checkpoint("run", 0, str(POLICY), "full", ""))
    cases = [
        Case("k", i, ({"role": "user", "content": "2" * (i + 1)},), "") for i in range(0, 40, 20)
    ]
    rows = engine.generate(cases, [[1], [2]], SAMPLING)
    short, long = (asked.body for asked in sorted(server.posts, key=lambda a: a.body["seed"]))
    assert rows == [
        [Completion("Tuesday", "length", len(short["prompt"]), 16)],
        [Completion(None, None, len(long["prompt"]), None, "prompt_too_long")],
    ]
    assert short["stop_token_ids"] == [1]
    assert "messages" not in short


def test_equal_prompts_of_engine_hf_are_the_ones_sent(serve: Serve) -> None:
    from pipeline.engines.hf import chat
    from pipeline.engines.http import wire

    server = serve(lambda asked: refusing(400, "context length"), names=["policy"])
    engine = build(f"{server.url}/{{step}}", model="policy", mode="completions")
    engine.load(Checkpoint("run", 0, str(POLICY), "full", ""))
    cases, _ = asking(3)
    engine.generate(cases, [[i] for i in range(3)], SAMPLING)
    prompts = chat.read([POLICY], None, None).encode([[dict(m) for m in c.messages] for c in cases])
    sent = sorted(server.posts, key=lambda a: a.body["seed"])
    assert [asked.body["prompt"] for asked in sent] == prompts
    assert chat.TODAY.strftime("%d %b %Y") == wire.DATE


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model": "policy"}, "neither base_url nor model holds"),
        ({"concurrency": 0}, "concurrency 0 is not in 1 to 1000"),
        ({"timeout_s": float("nan")}, "timeout_s is above 0"),
        ({"retries": -1}, "retries at least 0"),
        ({"mode": "responses"}, "'responses' is none of chat, completions"),
        ({"api_key_var": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set; export NO_SUCH_KEY"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(options: dict[str, Any], why: str) -> None:
    assert "NO_SUCH_KEY" not in os.environ
    with pytest.raises(engines.EngineError, match=why):
        engines.load("http", {"base_url": "http://127.0.0.1:1/v1", **options})


def test_a_key_in_the_place_of_its_variables_name_is_not_repeated() -> None:
    with pytest.raises(engines.EngineError, match="no name of an environment variable") as told:
        build("http://127.0.0.1:1/v1", api_key_var=KEY)
    assert KEY not in str(told.value)


@pytest.mark.parametrize("ending", ["\n", " b", "é"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY + ending)
    with pytest.raises(engines.EngineError, match="SERVER_KEY holds a space") as told:
        build("http://127.0.0.1:1/v1", api_key_var="SERVER_KEY")
    assert KEY not in str(told.value)
