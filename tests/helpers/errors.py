"""How tests look at errors."""

from contextlib import contextmanager

import pytest

from haarpool.errors import HaarPoolError


@contextmanager
def error_with(*parts: str):
    """An error in one line that holds all of `parts`."""
    with pytest.raises(HaarPoolError) as caught:
        yield caught
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
