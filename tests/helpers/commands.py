"""Two ways to call the command: in this process, and as a process of its own."""

import contextlib
import io
import os
import signal
import struct
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from haarpool import cli

HAARPOOL = Path(sysconfig.get_path("scripts")) / "haarpool"

# Waiting longer than this means that a process hangs. No result depends on it.
HANGS = 600


class Output(NamedTuple):
    out: str
    err: str
    code: int = 0


# ------------------------------------------------------------------ in this process


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_main(
    *arguments,
    main: Callable[[list[str]], int] = cli.main,
    code: int | None = 0,
    terminal: bool = False,
    **environment,
) -> Output:
    """Call a command in this process.

    Args:
        arguments: of the command, of any type.
        main: the command; by default `haarpool`.
        code: the expected exit code; None if any is fine.
        terminal: whether stdout and stderr are terminals.
        environment: variables that are set during the call.
    """
    words = [str(argument) for argument in arguments]
    variables = {"COLUMNS": "80"} | {name: str(value) for name, value in environment.items()}
    out, err = (_Terminal() if terminal else io.StringIO() for _ in range(2))
    with (
        mock.patch.dict(os.environ, variables),
        mock.patch.object(sys, "argv", ["haarpool", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            returned = main(words)
        except SystemExit as exit_:  # argparse
            returned = exit_.code
    assert code in (None, returned), err.getvalue() + out.getvalue()
    return Output(out.getvalue(), err.getvalue(), returned)


# ------------------------------------------------------------------ as a process of its own

# The child of a background job ignores SIGINT, and so would its own children.
_RESTORE_SIGINT = (
    "import os, signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)
_MARK = "HAARPOOL_TEST_PROCESS"


@contextlib.contextmanager
def start_process(*command, **options) -> Iterator[subprocess.Popen]:
    """Start a process whose SIGINT works; kill it and all its descendants at the end.

    Args:
        command: the program and its arguments.
        options: of `subprocess.Popen`.
    """
    mark = uuid.uuid4().hex
    options["env"] = options.get("env", os.environ) | {_MARK: mark}
    words = [sys.executable, "-c", _RESTORE_SIGINT, *map(str, command)]
    process = subprocess.Popen(words, text=True, start_new_session=True, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in _marked(mark):  # those that left the group
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            pipe.close()


def run_process(*command, code: int = 0, **options) -> Output:
    """Run a process to its end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_process(*command, **pipes | options) as process:
        out, err = process.communicate(timeout=HANGS)
    assert process.returncode == code, (out, err)
    return Output(out, err, code)


def run_python(code: str, *arguments, **options) -> Output:
    """Run code in a new interpreter."""
    return run_process(sys.executable, "-c", code, *arguments, **options)


# Call the command; in the Nth call of a function whose arguments contain a word, before it runs,
# print the numbers of the child processes and send the signal to this process.
SIGNAL_IN_CALL = """
import pkgutil, os, sys
from pathlib import Path
main, owner, name, word, left, number, *arguments = sys.argv[1:]
sys.argv[1:] = arguments
owner, left = pkgutil.resolve_name(owner), int(left)
function = getattr(owner, name)
def counted(*values, **options):
    global left
    left -= word in str(values)
    if left == 0:
        print(Path(f"/proc/self/task/{os.getpid()}/children").read_text(), flush=True)
        os.kill(os.getpid(), int(number))
    return function(*values, **options)
setattr(owner, name, counted)
sys.exit(pkgutil.resolve_name(main)(arguments))
"""


def run_until_signal(
    number: int,
    call: tuple[str, str, str, int],
    *arguments,
    main: str = "haarpool.cli:main",
    **options,
) -> Output:
    """Run the command in a process that sends a signal to itself, always at the same moment.

    Args:
        number: the signal.
        call: the moment: (owner, name, word, count) is before the `count`-th call of
            `owner.name` whose arguments contain `word`.
        arguments: of the command.
        main: the command.
        options: of `start_process`.

    Returns:
        Its output; for SIGKILL it ends with the ids of the child processes.
    """
    owner, name, word, count = call
    command = (sys.executable, "-c", SIGNAL_IN_CALL, main, owner, name, word, count, int(number))
    code = -number if number == signal.SIGKILL else 128 + number
    return run_process(*command, *arguments, code=code, **options)


def run_in_terminal(*command, columns: int = 80, **environment) -> str:
    """What a process writes to stderr where that is a terminal."""
    fcntl, pty, termios = map(pytest.importorskip, ("fcntl", "pty", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    options = {"stdout": subprocess.DEVNULL, "stderr": theirs, "env": os.environ | environment}
    with start_process(*command, **options) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1024):
                shown += part
        except OSError:  # the other end is closed
            pass
        process.wait(HANGS)
    os.close(ours)
    return shown.decode()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen | None = None) -> None:
    """Wait for a condition; `process` must not end before."""
    end = time.monotonic() + HANGS
    while not condition():
        assert process is None or process.poll() is None, "the process ended too early"
        assert time.monotonic() < end, "the process hangs"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def still_alive(pids: Iterable[int], seconds: float = 10) -> list[int]:
    """The processes that have not ended after some seconds.

    The tracker of multiprocessing ends by itself, a moment after the process that started it.
    """
    pids, limit = list(pids), time.monotonic() + seconds
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < limit:
        time.sleep(0.05)
    return left


def children_of(pid: int) -> list[int]:
    """The child processes of a process (Linux)."""
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []


def _marked(mark: str) -> list[int]:
    """Processes that inherited the mark (Linux)."""
    marked, wanted = [], f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes():
                marked.append(int(path.parent.name))
    return marked
