"""Methods × datasets × splits: one line of JSON for each training, and a report with intervals."""

from haarpool._validate import whole_number

MAX_JOBS, MAX_REPEATS = 256, 1000


def check_amounts(repeats: int, n_jobs: int) -> None:
    """Raise an error for a number of repeats or processes that is not possible."""
    whole_number("repeats", repeats, 1, MAX_REPEATS)
    whole_number("n_jobs", n_jobs, 1, MAX_JOBS)
