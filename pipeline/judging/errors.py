"""What judging may end with."""


class JudgeError(RuntimeError):
    """The judge cannot be asked as configured: one line, with the value and the cure."""


class JudgeBusy(RuntimeError):
    """The judge does not answer now, or its budget is spent: what was asked stays owed."""
