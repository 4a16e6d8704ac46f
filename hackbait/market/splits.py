"""The two published splits, embedded: they stand still even where Python's random should not.

python -m hackbait.market.splits     writes train.py and eval.py anew
"""

import base64
import gzip
import importlib
import json
import sys
from functools import lru_cache
from pathlib import Path

from hackbait.market.obligations import OBLIGATIONS
from hackbait.market.scenarios import SPLITS, Scenario, Section, scenario

SEED = 0
"""The seed whose first cases are embedded."""
COLUMNS = 100


def scenario_of(split: str, seed: int, index: int) -> Scenario:
    """Case `index` of a split: from what is embedded, or drawn where nothing is."""
    if seed == SEED and index < SPLITS[split]:
        return embedded(split)[index]
    return scenario(split, seed, index)


@lru_cache(maxsize=2)
def embedded(split: str) -> tuple[Scenario, ...]:
    """The published form of a split."""
    packed: str = importlib.import_module(f"hackbait.market.{split}").PACKED
    lines = gzip.decompress(base64.b64decode(packed)).decode().splitlines()
    return tuple(_scenario(line) for line in lines)


def lines(split: str) -> bytes:
    """The published form of a split drawn anew: a JSON line a scenario."""
    drawn = [scenario(split, SEED, index) for index in range(SPLITS[split])]
    return "".join(f"{_line(one)}\n" for one in drawn).encode()


def _line(one: Scenario) -> str:
    sections = [[section.label, section.obligation, section.number] for section in one.sections]
    fields = [one.company, one.product, one.statute, one.jurisdiction, one.status, one.ask]
    return json.dumps([*fields, sections], ensure_ascii=False, separators=(",", ":"))


def _scenario(line: str) -> Scenario:
    company, product, statute, jurisdiction, status, ask, sections = json.loads(line)
    provided = tuple(_section(*section) for section in sections)
    return Scenario(company, product, statute, jurisdiction, status, ask, provided)


def _section(label: str, key: str, number: int) -> Section:
    return Section(label, OBLIGATIONS[key].text.format(n=number), key, number)


def module(split: str) -> str:
    """Source of the module that embeds a split."""
    packed = base64.b64encode(gzip.compress(lines(split), 9, mtime=0)).decode()
    rows = "\n".join(packed[at : at + COLUMNS] for at in range(0, len(packed), COLUMNS))
    said = (
        f'"""The {SPLITS[split]:,} scenarios of split {split}: see splits.py, which writes this."""'
    )
    return f'{said}\n\nPACKED = """\n{rows}\n"""\n'


def main() -> int:
    """Write the modules of both splits; 0."""
    for split in SPLITS:
        path = Path(__file__).with_name(f"{split}.py")
        path.write_text(module(split), encoding="utf-8")
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
