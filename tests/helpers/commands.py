"""How tests call the command and look at its processes."""

import os
import sqlite3
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HAARPOOL = Path(sysconfig.get_path("scripts")) / "haarpool"


def run(*arguments, code=0, **environment):
    """Its output; what it says on the error stream stands behind it."""
    env = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run([HAARPOOL, *map(str, arguments)], capture_output=True, text=True, env=env)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout, done.stderr


def command(*arguments, **more):
    return [sys.executable, "-m", "haarpool", *map(str, arguments)]


def cached_chains(cache: Path) -> int:
    if not (cache / "chains.sqlite").exists():
        return 0
    connection = sqlite3.connect(f"file:{cache / 'chains.sqlite'}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute("SELECT count(*) FROM chains").fetchone()[0]
    except sqlite3.OperationalError:  # the table is not there yet
        return 0
    finally:
        connection.close()


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in tasks.read_text().split()] if tasks.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def on_a_terminal(*arguments, columns=80):
    """What a command shows on the error stream where that is a terminal."""
    fcntl, pty, termios = map(pytest.importorskip, ("fcntl", "pty", "termios"))
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen([HAARPOOL, *arguments], stdout=subprocess.PIPE, stderr=there) as process:
        os.close(there)
        shown = b""
        try:
            while part := os.read(here, 1024):
                shown += part
        except OSError:  # the other end is closed
            pass
        process.wait()
    os.close(here)
    return shown.decode()
