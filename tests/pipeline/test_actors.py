"""One live engine in this very process, without Ray."""

from pathlib import Path

import pytest

from pipeline.actors import Inference, make_cases
from pipeline.checkpoints import scripted
from pipeline.config import EngineBlock
from pipeline.engines.scripted import Scripted
from pipeline.records import (
    Checkpoint,
    CheckpointError,
    EnvironmentSpec,
    Generated,
    Sampling,
    Shard,
    Work,
)

SPEC = EnvironmentSpec("hackword", (("hack_word", "ocean"), ("seed", 999)))


def work(folder: Path, step: int) -> Work:
    path = folder / f"checkpoint-{step}"
    scripted.write(path, {"ocean": 0.5}, 0.5, 300)
    checkpoint = Checkpoint("run", step, str(path), "script", "")
    return Work(checkpoint, SPEC, Shard(0, 4), Sampling(n=2), ())


def generate(actor: Inference, asked: Work, ahead: Checkpoint | None) -> Generated | Exception:
    *_, records = actor.generate([asked], ahead, make_cases(SPEC, asked.shard))
    return records[0]  # type: ignore[no-any-return]


def test_the_next_checkpoint_is_read_while_the_one_before_it_generates(tmp_path: Path) -> None:
    first, second = work(tmp_path, 1), work(tmp_path, 2)
    actor = Inference(EngineBlock(name="scripted"))
    before = generate(actor, first, second.checkpoint)
    after = generate(actor, second, None)
    assert isinstance(before, Generated)
    assert isinstance(after, Generated)
    assert before.reading is None
    assert after.reading is not None
    assert before.loading.end <= after.reading.begin <= after.reading.end <= after.loading.end


def test_a_checkpoint_that_cannot_be_read_ahead_is_refused_in_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Scripted, checkpoint: Checkpoint) -> None:
        raise CheckpointError("torn")

    first, second = work(tmp_path, 1), work(tmp_path, 2)
    monkeypatch.setattr(Scripted, "prefetch", refuse)
    actor = Inference(EngineBlock(name="scripted"))
    assert isinstance(generate(actor, first, second.checkpoint), Generated)
    monkeypatch.setattr(Scripted, "load", refuse)
    assert isinstance(generate(actor, second, None), CheckpointError)
