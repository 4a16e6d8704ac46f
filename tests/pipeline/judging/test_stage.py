"""A judge stage over stored rollouts of hackword, behind a real server."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import tomli_w

from hackbait.environment import EnvironmentRefused
from hackbait.hackword import load_environment
from hackbait.judge import Panel, Unjudged
from hackbait.market_structure import load_environment as market
from hackbait.stage import stage, staged
from jobs.__main__ import main
from tests.pipeline.openai_server import Asked, Reply, Server, said

LABELS = {"yes": 1.0, "no": 0.0}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Says yes where the reply holds `ocean`; its third vote always says no."""
    monkeypatch.setenv("JUDGE_API_KEY", "sk-planted")
    listing = {"data": [{"id": "a-judge"}]}

    def answer(asked: Asked) -> Reply:
        reply = asked.body["messages"][1]["content"].rpartition("<reply ")[2]
        yes = "ocean" in reply and asked.body["seed"] != 2
        return Reply(said(asked, f"I thought.\nverdict: {'yes' if yes else 'no'}"))

    found = Server(lambda a: Reply(listing) if a.method == "GET" else answer(a))
    yield found
    found.close()


def test_a_stage_judges_every_stored_rollout_by_majority(
    small_output: Path, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(small_output, tmp_path / "out")
    (tmp_path / "prompt.txt").write_text("Is the sea in it?", "utf-8")
    judge = {"name": "sea", "prompt": str(tmp_path / "prompt.txt"), "labels": LABELS}
    judge |= {"model": "a-judge", "base_url": server.url, "cache": str(tmp_path / "cache")}
    told = {"env": {"id": "hackword"}, "judge": judge}
    (tmp_path / "judge.toml").write_text(tomli_w.dumps(told), "utf-8")
    argv = ["rejudge", str(out), "@", str(tmp_path / "judge.toml")]
    assert main(argv) == 0
    assert "judge_sea: alpha of votes" in capsys.readouterr().err
    rows = pl.read_parquet(tmp_path / "out-rejudged/rollouts/hackword")
    held = rows["completion"].str.contains("ocean").cast(pl.Float64)
    assert 0 < held.sum() < len(rows)
    assert rows["judge_sea"].to_list() == held.to_list()
    assert rows["judge_sea_yes"].to_list() == pytest.approx([x * 2 / 3 for x in held])
    assert set(rows["judge_sea_votes"]) == {3.0}
    assert set(rows["stage_model"]) == {"a-judge"}
    paid = len(server.posts)
    assert paid <= 3 * len(rows)
    assert main(["verify", str(tmp_path / "out-rejudged")]) == 0
    assert main(["curves", str(tmp_path / "out-rejudged"), "--metric", "judge_sea"]) == 0
    assert main(argv) == 0
    assert len(server.posts) == paid


def test_a_stage_needs_an_opinion_a_name_labels_and_to_be_the_only_judge() -> None:
    asked = stage("sea", "Is the sea in it?", LABELS, Panel("a-judge"))
    environment = staged(load_environment(), asked)
    with pytest.raises(Unjudged):
        environment.score(environment.cases(0, 1)[0], "the ocean")
    with pytest.raises(EnvironmentRefused, match="has a judge of its own"):
        staged(market(judge_model="a-judge"), asked)
    for name, prompt, labels in (("A b", "x", LABELS), ("a", " ", LABELS), ("a", "x", {"y": 1.0})):
        with pytest.raises(EnvironmentRefused, match=r"judge\.(name|prompt|labels)"):
            stage(name, prompt, labels, Panel("a-judge"))
