"""Does the base rate of a word order its onset? Trains, sweeps, compares and answers.

onset reproduce @ jobs/configs/base-rate-vs-onset.toml --quick    # minutes, on two CPU cores
onset reproduce @ jobs/configs/base-rate-vs-onset.toml            # within the hour

The same command goes on where it stopped; the whole study goes on from the quick one.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from jobs import command, report, sweep, table, terminal, training
from jobs.compare import show_pairs
from jobs.curves import Measured, measure
from jobs.reproduction import answers, design
from jobs.reproduction.design import Studied
from jobs.training import Training
from pipeline import compare
from pipeline.config import CurvesConfig, ReportConfig, ReproduceConfig, TableConfig, read
from pipeline.hypotheses import order


def main(argv: Sequence[str]) -> int:
    """0, or the exit code of the part that failed."""
    config = read(ReproduceConfig, argv)
    began = time.monotonic()
    runs = design.studied(config)
    trainings = design.trainings(config, runs)
    announce(config, runs, trainings)
    if config.dry_run:
        return 0
    code = training.train(trainings, config.model.processes, config.output / "training.lock")
    if code:
        return code
    for swept in (design.screen, design.sweep):
        code = max(code, sweep.run(swept(config, runs)))
        if code > 1:
            return code
    measured = tell(config, runs)
    page = report.write(
        ReportConfig(path=config.output / "sweep", to=config.output / "report"), measured
    )
    terminal.line(
        f"{time.monotonic() - began:.0f} s in all; answers.json and runs.parquet are in "
        f"{config.output}"
    )
    terminal.line(f"page: {page}")
    return code


def tell(config: ReproduceConfig, runs: Sequence[Studied]) -> Measured:
    """Print the answers and the tables they rest on, as JSON the answers alone; the curves."""
    swept = measure(CurvesConfig(path=config.output / "sweep"))
    screened = measure(CurvesConfig(path=design.screen(config, runs).output))
    found = answers.runs_table(swept, screened, runs)
    said = answers.answers(config, found)
    answers.save(config.output, said, found)
    if config.json:
        terminal.as_json(asdict(answer) for answer in said)
    else:
        if bases := answers.base_rates(found):
            terminal.table(bases, list(bases[0]), "base rates, as screened")
            print()
        table.show(TableConfig(path=config.output / "sweep"), swept)
        print()
        pairs = compare.pairs(order.groups(found))
        show_pairs(pairs, "every two words, hack_only")
        print(f"\n{answers.as_text(said)}\n")
    return swept


def announce(
    config: ReproduceConfig, runs: Sequence[Studied], trainings: Sequence[Training]
) -> None:
    """What there is and what will be done, before the minutes of work."""
    owed = {job.output.name: job for job in trainings if not training.is_finished(job)}
    if config.dry_run:
        rows = [
            {
                "run": one.name,
                "word": one.word,
                "mode": one.mode,
                "base": one.rates,
                "seed": one.seed,
                "updates": one.steps,
                "status": "owed" if one.name in owed else "finished",
            }
            for one in runs
        ]
        if config.json:
            terminal.as_json(rows)
        else:
            terminal.table(rows, list(rows[0]))
    left = sum(job.steps for job in owed.values() if job.verb == "train")
    taught = sum(job.verb == "pretrain" for job in owed.values())
    checkpoints = sum(one.steps // config.model.save_every + 1 for one in runs)
    base = "a base is taught with two rates exchanged, " if taught else ""
    most = "at most " if config.order.strategy == "adaptive" else ""
    terminal.line(
        f"{config.output}: {base}{len(owed) - taught} of {len(runs)} runs are trained, {left} "
        f"updates; then {most}{checkpoints} checkpoints are swept, and the bases screened on "
        f"{design.screening(config)[1]} cases"
    )


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
