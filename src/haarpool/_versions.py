"""What the last digits and the times of a result depend on: versions and the processor."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from haarpool import __version__


def find_versions(*packages: str) -> dict[str, str | None]:
    """Return the versions of Python, of haarpool and of packages; None if one is not installed.

    Args:
        *packages: Names of packages, as pip knows them.

    Example:
        >>> find_versions("numpy", "no-such-package").keys()
        dict_keys(['python', 'haarpool', 'numpy', 'no-such-package'])
    """
    found: dict[str, str | None] = {"python": platform.python_version(), "haarpool": __version__}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def processor_name() -> str:
    """Return the name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
