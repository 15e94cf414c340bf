"""The shell command: one file per command, with its arguments and what it does.

The files import the library inside their functions, so that `haarpool --help` is instant.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from typing import Any

from haarpool.cli.flags import shell_words
from haarpool.cli.loading import Terminated, handle_signals, load_modules, raise_interrupt
from haarpool.cli.parser import make_parser
from haarpool.cli.terminal import PrintableOutput, print_note, system_error
from haarpool.errors import HaarPoolError, HaarPoolWarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Arguments of the command; by default those of the process.

    Returns:
        The exit code: 0, 1 if a trial of a comparison failed, 2 for bad input (with one line on
        stderr), 130 after Ctrl-C, 143 after SIGTERM.
    """
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    if parsed.run is None:
        parser.print_help()
        return 2
    return run_safely(parsed.run, parsed)


def run_safely(
    command: Callable[[argparse.Namespace], int | None], parsed: argparse.Namespace
) -> int:
    """Run a command; errors and interruptions become a line on stderr and an exit code.

    Args:
        command: The command.
        parsed: Its arguments; with `debug` errors have a traceback.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", HaarPoolWarning)
        warnings.showwarning = _show_warning
        return _run(command, parsed)


def _run(command: Callable[[argparse.Namespace], int | None], parsed: argparse.Namespace) -> int:
    try:
        load_modules(getattr(parsed, "loads", ()), parsed)
        as_it_is = getattr(parsed, "writes_data", False) and not sys.stdout.isatty()
        with (
            handle_signals(raise_interrupt),
            nullcontext() if as_it_is else redirect_stdout(PrintableOutput(sys.stdout)),
        ):
            code = command(parsed)
            sys.stdout.flush()
            return code or 0
    except BrokenPipeError:  # `haarpool ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (HaarPoolError, OSError) as error:  # OSError: no permission, disk full
        if parsed.debug:
            raise
        print_note(
            error.in_words(shell_words) if isinstance(error, HaarPoolError) else system_error(error)
        )
        return 2
    except (MemoryError, RuntimeError) as error:
        if parsed.debug or not _is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:200] or "an allocation failed"
        print_note(f"out of memory ({reason}); use smaller batches, or fewer or smaller graphs")
        return 2
    except KeyboardInterrupt as interrupt:
        if parsed.debug:
            raise
        print_note(*(interrupt.args or ["interrupted; run the command again to continue"]))
        terminated = Terminated in (type(interrupt), type(interrupt.__context__))
        return 143 if terminated else 130
    return 0


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether an allocation failed; on a CPU torch raises a plain RuntimeError."""
    names = [cls.__name__ for cls in type(error).mro()]  # torch may not be imported
    failed = "OutOfMemoryError" in names or "allocate memory" in str(error)
    return isinstance(error, MemoryError) or failed


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if isinstance(message, HaarPoolWarning):  # others are for developers
        print_note(message.in_words(shell_words))
