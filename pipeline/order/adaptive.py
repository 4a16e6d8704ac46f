"""A sweep that evaluates few checkpoints: works of its plan in rounds, chosen by what is there.

What is there is all it goes by, and what is there is partitions as a full sweep names them: cut off
anywhere it goes on with the same choice, and a full sweep takes over every one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pipeline import contents, store
from pipeline.config import OrderBlock
from pipeline.holdings import Held, holdings, of_path, settled
from pipeline.order import rounds
from pipeline.order.answers import LOST, reading
from pipeline.order.rounds import Curves
from pipeline.order.search import Ask, Reading, Search, search, widest
from pipeline.order.trainer import hint
from pipeline.places import Where
from pipeline.plan import Plan, build, owed
from pipeline.records import EnvironmentSpec, Failure, Partition, Work, Written
from pipeline.runs import Run
from pipeline.status import Searched

Place = tuple[str, int]
"""Run and step."""
Parts = dict[EnvironmentSpec, list[Partition]]


class Adaptive:
    """Hears what is written and what fails; says what to do next."""

    def __init__(
        self, plan: Plan, out: Where, block: OrderBlock, done: Collection[str], workers: int = 1
    ) -> None:
        self.plan, self.out, self.workers = plan, out, workers
        self.done, self.failed, self.asked = set(done), set[str](), set[str]()
        self._parts: dict[Place, Parts] = {}
        for one in plan.partitions:
            specs = self._parts.setdefault((one.run, one.step), {})
            specs.setdefault(one.environment, []).append(one)
        self._searches = {run.name: self._search(run, block) for run in plan.runs}
        self._answers: dict[tuple[str, Ask], Curves] = {}
        self._news = set(self._parts)
        self._asked: tuple[int, list[tuple[str, Ask]]] = (0, [])

    def _search(self, run: Run, block: OrderBlock) -> Search:
        last = run.checkpoints[-1]
        specs = self._parts[run.name, last.step]
        guesses = (hint(last.path, build(spec).proxy, block.threshold) for spec in specs)
        guess = next((guess for guess in guesses if guess is not None), None)
        return search((c.step for c in run.checkpoints), block.grid, block.threshold, guess)

    def hear(self, event: Written | Failure) -> None:
        one = event.partition
        (self.failed if isinstance(event, Failure) else self.done).add(one.key)
        self._news.add((one.run, one.step))

    def works(self) -> list[Work]:
        """The next round; empty once the search is over."""
        asked = self._following()
        keys = {one.key for run, ask in asked for one in self._of(run, ask)}
        works = owed(self._with(keys), self.done)
        self.asked |= {partition.key for work in works for partition in work.partitions}
        return works

    @property
    def is_over(self) -> bool:
        return not self._following()

    def outlook(self) -> list[str]:
        """How the search stands and what it would do next, for people."""
        lines = []
        for said in self.searched:
            own = self._searches[said.run]
            seen = f"; the trainer's log crosses within {own.window}" if own.window else ""
            asked = [str(ask.step) for run, ask in self._following() if run == said.run]
            lines += [
                str(said),
                f"adaptive: run {said.run!r}: a grid of {len(own.coarse)} checkpoints"
                f"{seen}; next steps {', '.join(asked) or 'none'}",
            ]
        return lines

    @property
    def so_far(self) -> Plan:
        """The part of the plan that is there or was asked: nothing else is owed."""
        kept = self.done | self.asked
        rest = {one.key for one in self.plan.partitions} - kept
        return replace(self.plan, works=tuple(owed(self._with(kept), rest)))

    def _with(self, keys: Collection[str]) -> list[Work]:
        """Works with one of these partitions: what is generated for one serves the others."""
        return [w for w in self.plan.works if any(one.key in keys for one in w.partitions)]

    @property
    def searched(self) -> tuple[Searched, ...]:
        """What was evaluated of each run."""
        wanted = {run for run, _ in self._following()}
        known = rounds.known(self._searches, self._answers)
        return tuple(
            _searched(run, own, known[run], run not in wanted)
            for run, own in self._searches.items()
        )

    def _following(self) -> list[tuple[str, Ask]]:
        """The next round, by what is there now."""
        if self._news or self._asked[0] != self.workers:
            news = [place for place in self._parts if place in self._news]
            self._news.clear()
            self._answers |= settled(lambda: dict(self._answered(news)))
            asked = rounds.following(self._searches, self._answers, self.workers)
            self._asked = self.workers, asked
        return self._asked[1]

    def _answered(self, places: Sequence[Place]) -> Iterator[tuple[tuple[str, Ask], Curves]]:
        held: dict[str, Held] = {}
        if any(one.key in self.done for place in places for one in self._all(place)):
            held = {one.key: one for one in holdings(self.out).held}
        for run, step in places:
            specs = sorted(self._parts[run, step], key=repr)
            curves: Curves = [LOST for _ in specs]
            for ask in (Ask(step, False), Ask(step, True)):
                own = self._of(run, ask)
                if all(one.key in self.done for one in own):
                    curves = [self._reading(spec, own, (run, step), held) for spec in specs]
                elif any(one.key in self.failed for one in own):
                    curves = [replace(known, full=True) for known in curves]
                else:
                    continue
                yield (run, ask), curves

    def _reading(
        self, spec: EnvironmentSpec, own: Sequence[Partition], place: Place, held: dict[str, Held]
    ) -> Reading:
        """Of one curve at one checkpoint. What a store's listing does not show yet is there too."""
        chosen = [one for one in own if one.environment == spec]
        at = [held.get(o.key) or of_path(store.partition_path(self.out, o)) for o in chosen]
        whole = len(chosen) == len(self._parts[place][spec])
        return reading(map(contents.read, at), build(spec), whole)

    def _all(self, place: Place) -> list[Partition]:
        return [one for parts in self._parts[place].values() for one in parts]

    def _of(self, run: str, ask: Ask) -> list[Partition]:
        """The partitions of every environment that an ask is for."""
        return [one for one in self._all((run, ask.step)) if ask.full or one.shard.start == 0]


def _searched(run: str, own: Search, known: Mapping[int, Curves], is_over: bool) -> Searched:
    rated = {step for step, curves in known.items() if any(c.rate is not None for c in curves)}
    lost = known.keys() - rated
    blind = widest(step for step in own.coarse if step not in lost)
    return Searched(run, len(own.steps), tuple(sorted(rated)), blind, is_over)
