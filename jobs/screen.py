"""Base rates of any number of words from one sample, and what it takes to see rarer ones.

onset screen hackbait/policy --words ocean midnight --env.task story --cases.count 1024
onset screen outputs/demo/sweep --words ocean midnight copper
"""

import sys
from collections.abc import Sequence
from typing import Any

import tomli_w

from jobs import command, terminal
from jobs.curves import folder
from pipeline import frames, judging, screening, store
from pipeline.actors import Inference, Scorer, make_cases
from pipeline.config import ScreenConfig, SweepConfig, read
from pipeline.engines import EngineBusy, EngineDied, EngineError
from pipeline.mixture import refuse_other_sweep
from pipeline.places import Where
from pipeline.plan import build, owed, plan
from pipeline.records import Checkpoint, CheckpointError, Work
from pipeline.rows import CurveError
from pipeline.sample import Sample, samples
from pipeline.skeleton import Skeletons

SHOWN = ("word", "status", "rate", "lo", "hi", "hits", "deff", "relative_se", "needed")


def main(argv: Sequence[str]) -> int:
    """Print or save the base rates; 0."""
    config = read(ScreenConfig, argv, positional="path")
    screening.refuse_words(config.words, screening.grader_named(config.grader or "current"))
    found = [(sample, _screen(config, sample)) for sample in _samples(config)]
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        screening.placed(found).write_parquet(config.save)
    if config.json:
        terminal.as_json(_record(*one) for one in found)
        return 0
    for sample, screen in found:
        _show(sample, screen, config.at)
    return 0


def _screen(config: ScreenConfig, sample: Sample) -> screening.Screen:
    return screening.screen(
        sample,
        config.words,
        at=config.at,
        rates=config.rate,
        grader=config.grader,
        max_loss=config.max_loss,
    )


def _samples(config: ScreenConfig) -> list[Sample]:
    """What was said: rows that are there, or that are drawn now."""
    is_output = bool(store.row_files(config.path))
    if is_output and config.of_a_sample:
        raise CurveError(
            f"{config.path} is a sweep's output, whose rows are counted as they are; leave out "
            f"{', '.join(config.of_a_sample)}"
        )
    if not is_output:
        checkpoint = draw(config)
        run, step = checkpoint.run, checkpoint.step
        return _read(config.output, config.env.id, step, run)
    named = config.env.id if "env" in config.model_fields_set else None
    return _read(folder(config.path), named, config.step)


def _read(
    out: Where, environment: str | None, step: int | None, run: str | None = None
) -> list[Sample]:
    """Samples of an output, of one run when asked."""
    about = store.about(out, environment)

    def look(rows: Any) -> list[Sample]:
        own = rows if run is None else rows.filter(run=run)
        return samples(own, about.identity, about.grade, step)

    return frames.reading(out, about, look)


def draw(config: ScreenConfig) -> Checkpoint:
    """Write what a sweep of this one checkpoint would, of which nothing is drawn twice."""
    sweep = as_sweep(config)
    wanted = plan(sweep)
    refuse_other_sweep(sweep, wanted)
    works = owed(wanted.works, store.done(sweep.output, wanted.partitions))
    (checkpoint,) = (checkpoint for run in wanted.runs for checkpoint in run.checkpoints)
    terminal.line(
        f"run {checkpoint.run!r} step {checkpoint.step}: "
        f"{wanted.rollouts() - wanted.rollouts(works):,} rollouts are there, "
        f"{wanted.rollouts(works):,} to generate"
    )
    if works:
        judging.check(build(work.environment) for work in works)
        with store.writing(sweep.output, tomli_w.dumps(sweep.of_the_rows())):
            _generate(sweep, works)
    return checkpoint


def as_sweep(config: ScreenConfig) -> SweepConfig:
    """The sweep of the one checkpoint that is screened. CurveError where the path holds runs."""
    skeletons = Skeletons()
    with skeletons.told():
        good = [f for f in skeletons.discover(str(config.path)) if f.status == "ok"]
    runs = sorted({f.run for f in good})
    if len(runs) > 1:
        raise CurveError(f"{config.path} holds {len(runs)} runs, {runs[0]!r} first; point at one")
    step = config.step if config.step is not None else min((f.step for f in good), default=0)
    return SweepConfig.model_validate(
        {
            "output": config.output,
            "runs": [{"path": str(config.path), "base": config.base, "steps": str(step)}],
            **{name: getattr(config, name) for name in ("cases", "sampling", "engine")},
            "env": [config.env],
        }
    )


def _generate(sweep: SweepConfig, works: Sequence[Work]) -> None:
    """Draw, grade and write the works in this process.

    CheckpointError or EngineError when there is no answer; what was written stays.
    """
    inference = Inference(sweep.engine, sweep.cluster)
    scorer = Scorer(sweep.output, sweep.engine, {"versions": store.versions()})
    for work in terminal.tracked(works, "screen"):
        cases = make_cases(work.environment, work.shard)
        try:
            rollouts, (record,) = inference.generate([work], None, cases)
        except (EngineBusy, EngineDied) as error:
            raise EngineError(f"{error}; the same command goes on from here") from error
        if isinstance(record, CheckpointError):
            raise record
        scorer.write(work, cases, [record], rollouts)


def _record(sample: Sample, screen: screening.Screen) -> dict[str, Any]:
    return {
        **sample.place,
        "runs": sample.runs,
        "holds_for": sample.holds_for,
        "words": screen.words.to_dicts(),
        "needed": screen.needed.to_dicts(),
    }


def _show(sample: Sample, screen: screening.Screen, at: Sequence[float]) -> None:
    shared = f", shared by {sample.runs} runs" if sample.runs > 1 else ""
    rollouts, prompts = len(sample.texts), len(set(sample.prompts))
    print(
        f"run {sample.place['run']!r} step {sample.place['step']}{shared}: {rollouts:,} rollouts "
        f"of {prompts:,} prompts, {len(sample.reasons):,} lost"
    )
    words = screen.words.to_dicts()
    asked = [word for word in words if word["near"] is None]
    close = [word for word in words if word["near"] is not None]
    if asked:
        terminal.table(asked, SHOWN)
    if close:
        terminal.table(close, ["near", *SHOWN], title="words of its own, near chosen rates")
    nothing = [rate for rate in at if rate not in {word["near"] for word in close}]
    if nothing:
        rates = ", ".join(f"{100 * rate:.3g} %" for rate in nothing)
        print(f"no word of its own is said within {screening.WITHIN:g} times of {rates}")
    if len(screen.needed):
        terminal.table(screen.needed.to_dicts(), screen.needed.columns, title="rollouts needed")
    terminal.line(f"these rates hold for {sample.holds_for}; nothing else")


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
