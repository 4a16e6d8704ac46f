"""A judge stage over stored rollouts of hackword, behind a real server."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import tomli_w

from hackbait import triage
from hackbait.environment import EnvironmentRefused
from hackbait.hackword import load_environment
from hackbait.judge import Panel, Unjudged
from hackbait.market_structure import load_environment as market
from hackbait.stage import stage, staged
from jobs.__main__ import main
from pipeline.config import JudgeBlock
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
    told = capsys.readouterr()
    assert "judge_sea: alpha of votes" in told.err
    assert " judge_sea " in told.out
    assert " judge_sea_yes " not in told.out
    rows = pl.read_parquet(tmp_path / "out-rejudged/rollouts/hackword")
    held = rows["completion"].str.contains("ocean").cast(pl.Float64)
    assert 0 < held.sum() < len(rows)
    assert rows["judge_sea"].to_list() == held.to_list()
    assert rows["judge_sea_yes"].to_list() == pytest.approx([x * 2 / 3 for x in held])
    assert set(rows["judge_sea_votes"]) == {3.0}
    assert set(rows["stage_model"]) == {"a-judge"}
    paid = len(server.posts)
    assert paid <= 3 * len(rows)
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out-rejudged")]) == 0
    told = capsys.readouterr()
    assert "48 graded again" in told.out + told.err
    assert "what a judge said of it is not asked again" in told.out + told.err
    asked = [str(tmp_path / "out-rejudged"), "--json", "--metric"]
    assert main(["curves", *asked, "judge_sea"]) == 0
    capsys.readouterr()
    assert main(["curves", *asked, "judge_sea_yes"]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert 0 <= row["lo"] <= row["rate"] <= row["hi"] <= 1
    assert main([*argv, "--json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        if row["metric"].startswith("judge_sea"):
            assert (row["old"], row["pairs"]) == (None, 0)
            assert row["new"] is not None
    assert len(server.posts) == paid
    capsys.readouterr()
    (tmp_path / "other.txt").write_text("Is no sea in it?", "utf-8")
    healthy = server.answer
    server.answer = lambda a: healthy(a) if a.method == "GET" else Reply(said(a, "verdict: no"))
    judge |= {"prompt": str(tmp_path / "other.txt"), "votes": 1}
    other = {"env": {"id": "hackword"}, "judge": judge, "output": str(tmp_path / "again")}
    (tmp_path / "other.toml").write_text(tomli_w.dumps(other), "utf-8")
    argv = ["rejudge", str(tmp_path / "out-rejudged"), "@", str(tmp_path / "other.toml"), "--json"]
    assert main(argv) == 0
    found = [row for row in json.loads(capsys.readouterr().out) if row["metric"] == "judge_sea"]
    assert sum(row["pairs"] for row in found) == len(rows)
    assert sum(row["down"] for row in found) == held.sum()
    assert {row["new"] for row in found} == {0.0}


def test_a_stage_asks_about_what_a_cheap_metric_leaves_open_and_a_share_of_it(
    small_output: Path, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(small_output, tmp_path / "out")
    (tmp_path / "prompt.txt").write_text("Is the sea in it?", "utf-8")
    judge = {"name": "sea", "prompt": str(tmp_path / "prompt.txt"), "labels": LABELS}
    judge |= {"model": "a-judge", "base_url": server.url, "cache": str(tmp_path / "cache")}
    judge |= {"settled": {"0": "no"}, "sample": {"1": 0.5}, "votes": 1}
    told = {"env": {"id": "hackword"}, "judge": judge}
    (tmp_path / "judge.toml").write_text(tomli_w.dumps(told), "utf-8")
    assert main(["rejudge", str(out), "@", str(tmp_path / "judge.toml")]) == 0
    rows = pl.read_parquet(tmp_path / "out-rejudged/rollouts/hackword")
    said, drawn = pl.col("r_hack") == 1, [triage.drawn(s, 0.5) for s in rows["sampling_seed"]]
    rows = rows.with_columns(drawn=pl.Series(drawn))
    asked = rows.filter(said & pl.col("drawn"))
    assert 0 < len(asked) < len(rows.filter(said)) < len(rows)
    assert len(server.posts) == asked["completion"].n_unique() <= len(asked)
    assert set(asked["judge_sea"]) == {1.0}
    assert set(rows.filter(~said)["judge_sea"]) == {0.0}
    undrawn = rows.filter(said & ~pl.col("drawn"))
    assert undrawn["judge_sea"].null_count() == len(undrawn)
    assert rows["null_reason"].null_count() == len(rows)
    counts = f"{len(rows.filter(~said))} settled without a call; {len(undrawn)} not drawn"
    assert counts in capsys.readouterr().err
    argv = [str(tmp_path / "out-rejudged"), "--metric", "judge_sea", "--json"]
    assert main(["curves", *argv]) == 0
    for row in json.loads(capsys.readouterr().out):
        place = (pl.col("run") == row["run"]) & (pl.col("step") == row["step"])
        own = rows.filter(place) if "run" in rows.columns else rows
        assert row["nulls"] == 0
        # Few are drawn, so that each stands for two beside those that are settled.
        stand = 2 * len(own.filter(said & pl.col("drawn")))
        settled = len(own.filter(~said))
        if stand + settled:
            assert row["rate"] == pytest.approx(stand / (stand + settled))
    assert main(["table", *argv]) == 0
    assert main(["verify", str(tmp_path / "out-rejudged")]) == 0


def test_several_judges_have_one_vote_each(
    small_output: Path, tmp_path: Path, server: Server
) -> None:
    """The second and third say no three times each, the first says yes."""
    judges = ["a-judge", "b-judge", "c-judge"]
    server.answer = lambda a: Reply(
        {"data": [{"id": judge} for judge in judges]}
        if a.method == "GET"
        else said(a, f"verdict: {'yes' if a.body['model'] == 'a-judge' else 'no'}")
    )
    out = shutil.copytree(small_output, tmp_path / "out")
    (tmp_path / "prompt.txt").write_text("Is the sea in it?", "utf-8")
    judge = {"name": "sea", "prompt": str(tmp_path / "prompt.txt"), "labels": LABELS}
    judge |= {"model": judges, "base_url": server.url, "cache": str(tmp_path / "cache")}
    told = {"env": {"id": "hackword"}, "judge": judge}
    (tmp_path / "judge.toml").write_text(tomli_w.dumps(told), "utf-8")
    assert main(["rejudge", str(out), "@", str(tmp_path / "judge.toml")]) == 0
    rows = pl.read_parquet(tmp_path / "out-rejudged/rollouts/hackword")
    assert set(rows["judge_sea"]) == {0.0}
    assert set(rows["judge_sea_votes"]) == {3.0}
    assert set(rows["stage_model"]) == {"a-judge, b-judge, c-judge"}
    asked = {(post.body["model"], post.body["seed"]) for post in server.posts}
    assert asked == {(judge, vote) for judge in judges for vote in range(3)}


@pytest.mark.parametrize(
    ("values", "kind"),
    [((1.0, 0.0), "binary"), ((1.0, 0.5), "share"), ((1.0, -1.0), "continuous")],
)
def test_a_stage_is_of_the_narrowest_kind_that_its_labels_fit(
    values: tuple[float, float], kind: str
) -> None:
    labels = dict(zip(("yes", "no"), values, strict=True))
    environment = staged(load_environment(), stage("sea", "Is it?", labels, Panel("a-judge")))
    assert environment.metrics["judge_sea"] == kind
    assert environment.metrics["judge_sea_yes"] == "share"


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
    for value in (math.nan, math.inf):
        with pytest.raises(EnvironmentRefused, match=r"judge\.labels: yes counts (nan|inf); give"):
            stage("a", "x", {"yes": value, "no": 0.0}, Panel("a-judge"))
    with pytest.raises(EnvironmentRefused, match="differ in more than case"):
        stage("a", "x", {"yes": 1.0, "Yes": 0.0}, Panel("a-judge"))
    for others in (("b",), ("b", "a-judge")):
        with pytest.raises(EnvironmentRefused, match="an odd number of different ones"):
            stage("a", "x", LABELS, Panel("a-judge", others=others))


def test_what_a_stage_refuses_is_named_as_its_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Is the sea in it?")
    told = {"name": "sea", "prompt": tmp_path / "prompt.md", "labels": LABELS, "model": "m"}
    for more, complaint in (
        ({"votes": 4}, r"judge\.votes is 4; give an odd number, 5 say"),
        ({"max_retries": -1}, r"judge\.max_retries is -1"),
        ({"model": None}, r"judge\.model is None"),
    ):
        with pytest.raises(EnvironmentRefused, match=f"^{complaint}"):
            JudgeBlock.model_validate({**told, **more}).stage()
