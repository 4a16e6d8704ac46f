"""Steps to 50 % r_hack per run: base rate, onset with its interval and bracket, truth at both ends.

onset table outputs/demo/sweep --picture curves.png
onset table other-tool.csv --json
"""

import sys
from collections.abc import Sequence

from jobs import command, terminal
from jobs.curves import Measured, assumed, measure, onsets, plots
from pipeline import headline
from pipeline.config import TableConfig, read
from pipeline.report import panels


def main(argv: Sequence[str]) -> int:
    """Print or save the onset table; 0."""
    config = read(TableConfig, argv, positional="path")
    show(config, measure(config))
    return 0


def show(config: TableConfig, measured: Measured) -> None:
    """The headline table on stdout, and the picture and Parquet that were asked for."""
    metric = config.metric or measured.proxy
    found = onsets(measured, metric, config.threshold)
    table = headline.headline(measured.frame, found, metric, measured.true)
    for said in assumed(config.path, measured, found):
        terminal.line(said)
    if config.save:
        config.save.parent.mkdir(parents=True, exist_ok=True)
        table.write_parquet(config.save)
    if config.picture:
        config.picture.parent.mkdir(parents=True, exist_ok=True)
        config.picture.write_bytes(
            panels.picture(measured.frame, found, metric, measured.true, config.threshold)
        )
    if config.json:
        terminal.as_json(table.to_dicts())
    else:
        rows = headline.readable(table)
        shown = [c for c in headline.READABLE if any(row[c] not in (None, "-") for row in rows)]
        terminal.table(rows, shown)
        if config.plot:
            print(f"\n{plots(measured, metric, config.threshold)}")


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
