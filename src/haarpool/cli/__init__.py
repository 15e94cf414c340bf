"""The shell command: one file per command, with its arguments and what it does.

The files import the library inside their functions, so that `haarpool --help` is instant.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib import import_module
from types import FrameType
from typing import Any

from haarpool.cli.flags import with_flags
from haarpool.cli.output import PrintableOutput, printable, system_error
from haarpool.cli.parser import make_parser
from haarpool.errors import HaarPoolError, HaarPoolWarning


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM; it ends as after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Arguments of the command; by default those of the process.

    Returns:
        The exit code: 0, 1 if a benchmark misses a limit, 2 for bad input (with one line on
        stderr), 130 after Ctrl-C, 143 after SIGTERM.
    """
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    if parsed.run is None:
        parser.print_help()
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("always", HaarPoolWarning)
        warnings.showwarning = _show_warning
        return _run(parsed)


def _run(parsed: argparse.Namespace) -> int:
    try:
        with _handle_signals(_exit_now):  # imports take seconds; libraries must not catch Ctrl-C
            for module in parsed.loads:
                import_module(module)
        with _handle_signals(_raise_interrupt):
            writes_data = getattr(parsed, "writes_data", False)
            with nullcontext() if writes_data else redirect_stdout(PrintableOutput(sys.stdout)):
                code: int | None = parsed.run(parsed)
            sys.stdout.flush()
            return code or 0
    except BrokenPipeError:  # `haarpool ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (HaarPoolError, OSError) as error:  # OSError: no permission, disk full
        if parsed.debug:
            raise
        _print_error(with_flags(error) if isinstance(error, HaarPoolError) else system_error(error))
        return 2
    except (MemoryError, RuntimeError) as error:
        if parsed.debug or not _is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:200] or "an allocation failed"
        _print_error(f"out of memory ({reason}); use smaller batches, or fewer or smaller graphs")
        return 2
    except KeyboardInterrupt as interrupt:
        if parsed.debug:
            raise
        _print_error(*(interrupt.args or ["interrupted; run the command again to continue"]))
        terminated = Terminated in (type(interrupt), type(interrupt.__context__))
        return 143 if terminated else 130
    return 0


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether an allocation failed; on a CPU torch raises a plain RuntimeError."""
    names = [cls.__name__ for cls in type(error).mro()]  # torch may not be imported
    failed = "OutOfMemoryError" in names or "allocate memory" in str(error)
    return isinstance(error, MemoryError) or failed


@contextmanager
def _handle_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
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


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _exit_now(number: int, frame: FrameType | None) -> None:
    _print_error("interrupted")
    sys.stderr.flush()
    os._exit(128 + number)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, HaarPoolWarning):  # others are for developers
        _print_error(str(message))


def _print_error(text: str) -> None:
    if os.environ.get("RANK", "0") == "0":  # only one of several processes prints
        print(f"haarpool: {printable(text)}", file=sys.stderr)
