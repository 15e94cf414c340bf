"""Checks that need a GPU."""

import warnings
from contextlib import contextmanager

import torch


@contextmanager
def never_waiting():
    """Raise an error where the host waits for the device."""
    with warnings.catch_warnings():
        # A warning that became an error here would leave the mode on for all tests that follow.
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
