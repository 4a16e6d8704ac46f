"""What to evaluate next in several runs at once, a round at a time. Pure: answers in, asks out.

A search is played again from its beginning with the answers that are there, so that what was cut
off in the middle of a round goes on with the rest of that round, and asks what it would have asked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pipeline.order.search import Ask, Reading, Search, wants

Curves = Sequence[Reading]
"""Readings of one checkpoint, one a curve of the run: its environments in a fixed order."""
Answers = Mapping[tuple[str, Ask], Curves]
"""By run and ask. A small sample stays an answer when the rest has come."""
Known = Mapping[str, Mapping[int, Curves]]
"""By run and step: the largest sample."""


def following(
    searches: Mapping[str, Search], answers: Answers, workers: int
) -> list[tuple[str, Ask]]:
    """The next round by run; none once every curve's search is over.

    What others have evaluated counts too: it ends a search, and is refined where the search of its
    own has nothing left to ask. A run that is over is asked no more, whatever joins it.
    """
    present = known(searches, answers)
    unfinished = {run: own for run, own in searches.items() if _of_run(own, present[run], 1)}
    playing = dict(searches)
    for asked in played(playing, lambda *one: answers[one], workers) if unfinished else ():
        absent = [one for one in asked if one not in answers]
        if wanted := [one for one in absent if one[0] in unfinished]:
            return wanted
        for run, _ in absent:
            playing.pop(run, None)
    return _round(unfinished, present, workers)


def known(searches: Mapping[str, Search], answers: Answers) -> dict[str, dict[int, Curves]]:
    """Everything that was answered."""
    found: dict[str, dict[int, Curves]] = {run: {} for run in searches}
    for (run, ask), readings in answers.items():
        if run in found and (ask.full or ask.step not in found[run]):
            found[run][ask.step] = readings
    return found


def played(
    searches: Mapping[str, Search], answer: Callable[[str, Ask], Curves], workers: int
) -> Iterator[list[tuple[str, Ask]]]:
    """The rounds of a search from its beginning. A round is answered when the next is wanted.

    A run that is taken out of `searches` meanwhile is asked no more.
    """
    so_far: dict[str, dict[int, Curves]] = {run: {} for run in searches}
    while asked := _round(searches, so_far, workers):
        yield asked
        for run, ask in asked:
            if run in searches:
                so_far[run][ask.step] = answer(run, ask)


def _round(searches: Mapping[str, Search], known: Known, workers: int) -> list[tuple[str, Ask]]:
    """Every unfinished run has its share of the workers, one at least."""
    unfinished = [run for run in searches if _of_run(searches[run], known[run], 1)]
    width = max(1, workers // max(1, len(unfinished)))
    return [(run, ask) for run in unfinished for ask in _of_run(searches[run], known[run], width)]


def _of_run(search: Search, known: Mapping[int, Curves], width: int) -> list[Ask]:
    """What its curves want: an evaluated checkpoint serves all of them."""
    curves = len(next(iter(known.values()), [None]))
    full: dict[int, bool] = {}
    for curve in range(curves):
        own = {step: readings[curve] for step, readings in known.items()}
        for ask in wants(search, own, width):
            full[ask.step] = full.get(ask.step, False) or ask.full
    return [Ask(step, whole) for step, whole in full.items()][:width]
