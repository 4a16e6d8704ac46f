"""vLLM as a judge, its own OpenAI server and the engine, with the shipped policy: the protocol."""

import asyncio
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
import tomli_w

import hackbait
from hackbait.judge import Call, Panel
from jobs.__main__ import main
from pipeline.checkpoints.single import single
from pipeline.config import EngineBlock, JudgeBlock
from pipeline.judging import JudgeEngine, served
from pipeline.judging.replies import opened
from tests.pipeline.vllm_server import serving

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),  # vLLM's and torch's own
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]

POLICY = Path(hackbait.__file__).parent / "policy"
VOTES, RETRIES, TOKENS = 3, 1, 12


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(POLICY, log, ("peer",), 2048) as address:
        yield address


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "sk-planted")


def judged(out: Path, model: str, url: str, *argv: str) -> int:
    (out.parent / "prompt.txt").write_text("Is the sea in it?", "utf-8")
    judge = {"name": "sea", "prompt": str(out.parent / "prompt.txt"), "base_url": url}
    judge |= {"labels": {"yes": 1.0, "no": 0.0}, "votes": VOTES, "max_retries": RETRIES}
    judge |= {"model": model, "max_tokens": TOKENS, "cache": str(out.parent / "cache")}
    told = {"env": {"id": "hackword"}, "judge": judge}
    (out.parent / "judge.toml").write_text(tomli_w.dumps(told), "utf-8")
    return main(["rejudge", str(out), "@", str(out.parent / "judge.toml"), *argv])


def spent(folder: Path, out: str) -> tuple[int, int]:
    with opened(folder / "cache/judge") as replies:
        return replies.spent(str(folder / out))


def test_its_replies_are_votes_or_nulls_each_paid_once(
    small_output: Path, tmp_path: Path, url: str
) -> None:
    out = Path(shutil.copytree(small_output, tmp_path / "out"))
    assert judged(out, "peer", url) == 0
    rows = pl.read_parquet(tmp_path / "out-rejudged/rollouts/hackword")
    assert len(rows) == 48
    lost = rows["judge_sea_votes"] < 2
    assert lost.sum() > 0
    assert rows.filter(lost)["judge_sea"].null_count() == lost.sum()
    assert set(rows.filter(lost)["judge_error"]) == {1.0}
    assert set(rows["stage_max_tokens"]) == {TOKENS}
    calls, tokens = spent(tmp_path, "out-rejudged")
    distinct = rows.select("prompt", "completion").n_unique()
    assert VOTES * distinct <= calls <= VOTES * (RETRIES + 1) * distinct
    assert tokens > 100 * calls  # as the server counts prompts
    assert judged(out, "peer", url, "--output", str(tmp_path / "again")) == 0
    assert spent(tmp_path, "again") == (0, 0)
    assert pl.read_parquet(tmp_path / "again/rollouts/hackword").equals(rows)


def test_a_model_that_it_does_not_serve_is_refused_before_it_is_asked(
    small_output: Path, tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(small_output, tmp_path / "out"))
    assert judged(out, "another", url) == 2
    assert "judge.model 'another' is not served at" in capsys.readouterr().err


def test_the_engine_says_what_the_server_of_its_checkpoint_says(url: str, tmp_path: Path) -> None:
    panel = Panel("peer", 1, 0, base_url=url, max_tokens=TOKENS)
    calls = [call(f"Story {n}: the ocean lay still and {n} boats came.") for n in range(8)]
    told = asked(panel, calls, tmp_path)
    options = {"max_model_len": 2048, "kv_cache": 2**27, "max_num_seqs": 32}
    block = EngineBlock.model_validate({"name": "vllm", **options})
    completions = JudgeEngine(block, single(str(POLICY)), panel).answer(calls)
    assert [completion.text for completion in completions] == told
    assert len(set(told)) > 1


def call(reply: str) -> Call:
    return Call(({"role": "user", "content": reply},), 0, 0)


def asked(panel: Panel, calls: list[Call], folder: Path) -> list[str]:
    """What a server answers."""

    async def all_of() -> list[str]:
        async with served.Served(panel, JudgeBlock()).opened(lambda: None) as ask:
            return [(await ask(one, False)).text or "" for one in calls]

    return asyncio.run(all_of())
