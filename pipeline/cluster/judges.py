"""Judge engines: actors beside the inference actors, each with a share of the machine of its own.

Ray makes another process in the place of one that ends, under the same handle.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray

from hackbait.judge import Call
from pipeline.cluster.workers import ENVIRONMENT, reason
from pipeline.config import ClusterBlock, JudgeBlock
from pipeline.engines import EngineBusy, EngineDied, EngineError
from pipeline.judging import Answers, JudgeEngine, JudgeError, engine_of
from pipeline.losses import ATTEMPTS
from pipeline.placement import judge_share, left, share_gpu
from pipeline.records import CheckpointError, Completion

LOG = logging.getLogger(__name__)
SAID = (CheckpointError, EngineError, EngineBusy)
"""What an engine says and stays usable; after anything else its process is replaced."""


class Judges:
    """All judge engines of a sweep; none where nobody judges, or a server does."""

    def __init__(self, judge: JudgeBlock, cluster: ClusterBlock) -> None:
        self._patience = cluster.patience
        made = engine_of(judge)
        self.actors: list[Any] = []
        if made is None:
            return
        engine, checkpoint, panel = made
        resources = ray.cluster_resources()
        left(resources, judge)  # refuses one that leaves no GPU
        share = judge_share(judge, resources)
        own = ray.remote(
            num_cpus=1,
            num_gpus=share,
            max_restarts=-1,
            max_task_retries=ATTEMPTS - 1,
            runtime_env={"env_vars": ENVIRONMENT},
        )(JudgeEngine)
        parts = share_gpu(engine, share), checkpoint, panel
        self.actors += [own.remote(*parts) for _ in range(judge.workers)]

    @property
    def answers(self) -> Answers | None:
        """What score actors ask."""
        return Asking(tuple(self.actors)) if self.actors else None

    def load(self) -> dict[str, str]:
        """Have each of them ready; the fingerprint of what they hold, for footers. JudgeError."""
        if not self.actors:
            return {}
        try:
            held = ray.get([actor.load.remote() for actor in self.actors], timeout=self._patience)
        except ray.exceptions.GetTimeoutError:
            self.kill()
            raise JudgeError(
                f"judge.engine: {len(self.actors)} were not ready in {self._patience:g} s; has the "
                "cluster room for judge.workers, each of judge.share?"
            ) from None
        except ray.exceptions.RayError as error:
            self.kill()
            raise JudgeError(f"judge.engine: {reason(error)}") from None
        return {"judge": held[0]}

    def replace(self) -> None:
        """Another process for each of them; what they were asked is asked again."""
        for actor in self.actors:
            ray.kill(actor, no_restart=False)

    def kill(self) -> None:
        for actor in self.actors:
            ray.kill(actor)


@dataclass(frozen=True, slots=True)
class Asking:
    """See `Answers`: calls spread over all judge engines. It travels to score actors."""

    actors: tuple[Any, ...]

    def __call__(self, calls: Sequence[Call]) -> list[Completion]:
        parts = [calls[i :: len(self.actors)] for i in range(len(self.actors))]
        asked = [a.answer.remote(own) for a, own in zip(self.actors, parts, strict=True) if own]
        found: list[Completion | None] = [None] * len(calls)
        for i, ref in enumerate(asked):
            found[i :: len(self.actors)] = self._answered(self.actors[i], ref, parts[i])
        return [completion for completion in found if completion is not None]

    def _answered(self, actor: Any, ref: Any, calls: Sequence[Call]) -> list[Completion]:
        """What comes of a request: asked again of a new process where the engine raised.

        Where its process ends, Ray asks again. Raises EngineDied once it was tried enough.
        """
        why = ""
        for _ in range(ATTEMPTS):
            try:
                answers: list[Completion] = ray.get(ref)
                return answers
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, SAID):
                    raise error.cause from None
                why = reason(error)
                LOG.warning("a judge engine raised; it is replaced: %s", why)
                ray.kill(actor, no_restart=False)
                ref = actor.answer.remote(calls)
            except ray.exceptions.RayError as error:
                raise EngineDied(f"{reason(error)} ({ATTEMPTS} times)") from None
        raise EngineDied(f"{why} ({ATTEMPTS} times)")
