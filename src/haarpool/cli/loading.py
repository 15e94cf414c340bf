"""Importing modules that take seconds, and signals meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from haarpool.cli.terminal import is_main_process, print_note

_LOADING = "loading torch ..."


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM; it ends as after Ctrl-C."""


def load_modules(modules: Iterable[str], arguments: Namespace) -> None:
    """Import modules; a line on stderr says so if torch is among them.

    The line disappears from a terminal. Elsewhere, as in a log, it stays, and only commands with
    progress write it.

    Args:
        modules: Names of modules.
        arguments: Arguments of the command.
    """
    slow = "torch" in modules and "torch" not in sys.modules
    shown = slow and is_main_process() and not getattr(arguments, "quiet", False)
    if shown:
        if sys.stderr.isatty():
            print(_LOADING, end="", file=sys.stderr, flush=True)
        elif hasattr(arguments, "quiet"):
            print_note(_LOADING)
    with handle_signals(exit_now):  # libraries must not catch Ctrl-C
        try:
            for module in modules:
                import_module(module)
        finally:
            if shown:
                _clear_line()


def load_for(source: str, root: str | None, arguments: Namespace) -> None:
    """Find a dataset, then import what its reader needs: errors come before torch."""
    from haarpool.datasets import find_source

    load_modules(find_source(source, root, download=False).reader.modules, arguments)


def load_for_arch(arch: str | None, arguments: Namespace) -> None:
    """Import torch if installed packages may have layers of an architecture."""
    from haarpool.nn.strings.registry import asks_packages

    if arch and asks_packages(arch):
        load_modules(("torch", "torch_geometric.nn"), arguments)


@contextmanager
def handle_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM inside a block; only the main thread may do so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, earlier in before.items():
        if earlier != signal.SIG_IGN:  # as for the children of a background job
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def raise_interrupt(number: int, frame: FrameType | None) -> None:
    """Raise the exception of a signal."""
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def exit_now(number: int, frame: FrameType | None) -> None:
    """End the process at once."""
    _clear_line()
    print_note("interrupted")
    sys.stderr.flush()
    os._exit(128 + number)


def _clear_line() -> None:
    """Clear the line on a terminal, with the ^C that it may show."""
    if sys.stderr.isatty() and is_main_process():
        print(f"\r{' ' * (len(_LOADING) + 2)}\r", end="", file=sys.stderr, flush=True)
