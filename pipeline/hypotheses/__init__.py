"""What a study was to find out: one file a question, each a pure verdict on the table of its runs.

The hypotheses are those of the seed environment (assay-hackword), sentence by sentence; the last
question, whether it is the rate or the word, is ours.
"""

from dataclasses import dataclass

REPRODUCED = "reproduced"
PARTIAL = "partial"
NOT = "not reproduced"
"""Found as stated; in part; or the opposite. What cannot be told is unresolved, see verdicts."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question, answered."""

    question: str
    verdict: str
    """REPRODUCED, PARTIAL, NOT, one of pipeline.verdicts, or what the question's file names."""
    finding: str
    """What was seen, in numbers."""
    rule: str
    """What decides the verdict."""
