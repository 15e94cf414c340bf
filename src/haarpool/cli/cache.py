"""`haarpool cache`: show or clear the cache of chains."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from haarpool._numbers import fixed
from haarpool.cli.parser import new_command
from haarpool.errors import HaarPoolError


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    summary = "show or clear the cache of chains"
    command = new_command(commands, "cache", summary, "cache --info")
    command.set_defaults(run=run, loads=("haarpool.chains.cache",))
    action = command.add_mutually_exclusive_group(required=True)
    action.add_argument("--info", action="store_true", help="print path, number of chains and size")
    action.add_argument("--clear", action="store_true", help="delete all chains")
    command.add_argument("--cache", metavar="DIR", help="cache folder (default: HAARPOOL_CACHE)")
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: Namespace) -> None:
    """Print what the cache holds, and clear it if asked to."""
    from haarpool.chains.cache import ChainCache

    cache = ChainCache(arguments.cache)
    info = cache.info()
    try:
        if arguments.clear:
            cache.clear()
    except OSError as error:
        raise HaarPoolError(
            "a cache that can be deleted", f"{error}", "check the permissions of the folder"
        ) from error
    finally:
        cache.close()
    if arguments.json:
        print(json.dumps({"path": str(info.path), "chains": info.chains, "bytes": info.bytes}))
    else:
        removed = "removed " if arguments.clear else ""
        print(f"{removed}{info.chains:,} chains, {fixed(info.bytes / 1e6)} MB in {info.path}")
