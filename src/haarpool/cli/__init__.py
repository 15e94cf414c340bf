"""The shell command: errors and exit codes. What commands do stands in `commands`.

Nothing heavy is imported before a command runs, so that `haarpool --help` is instant.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from haarpool.cli.arguments import parser
from haarpool.errors import HaarPoolError, HaarPoolWarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all went well, 2 and one line for bad input."""
    parsed = parser().parse_args(arguments)
    if parsed.run is None:
        parser().print_help()
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("always", HaarPoolWarning)
        warnings.showwarning = _show_warning
        return _run(parsed)


def _run(parsed: argparse.Namespace) -> int:
    try:
        module, _, function = parsed.run.partition(".")
        with _quiet_interrupt():
            command = getattr(import_module(f"haarpool.cli.{module}"), function)
        command(parsed)
        sys.stdout.flush()
    except BrokenPipeError:  # `haarpool ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (HaarPoolError, OSError) as error:  # an OSError: a folder without rights, a full disk
        if parsed.debug:
            raise
        _say(str(error))
        return 2
    except KeyboardInterrupt as interrupt:
        if parsed.debug:
            raise
        _say(*(interrupt.args or ["interrupted; run it again to go on"]))
        return 130
    return 0


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """While packages are imported, which takes seconds, Ctrl-C ends without their complaints."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        _say("interrupted")
        sys.stderr.flush()
        os._exit(130)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, HaarPoolWarning):  # others are for developers
        _say(str(message))


def _say(text: str) -> None:
    if os.environ.get("RANK", "0") == "0":  # of several processes one speaks
        print(f"haarpool: {text}", file=sys.stderr)
