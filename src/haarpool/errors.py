"""The one error that bad input raises."""


class HaarPoolError(ValueError):
    """Bad input: what was expected, what came instead, and the way out.

    >>> print(HaarPoolError("a ratio in (0, 1)", "1.5", "pass for example ratio=0.5"))
    expected a ratio in (0, 1), got 1.5; pass for example ratio=0.5
    """

    def __init__(self, expected: str, got: str, remedy: str) -> None:
        # All three go to `args`, so that the error survives pickling between processes.
        super().__init__(expected, got, remedy)
        self.expected, self.got, self.remedy = expected, got, remedy

    def __str__(self) -> str:
        return f"expected {self.expected}, got {self.got}; {self.remedy}"


class HaarPoolWarning(UserWarning):
    """Something went wrong that does not stop the work, and what was done instead."""
