"""Versions of packages, which the last digits of a result depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from haarpool import __version__

# Packages whose versions a run, each line of a comparison, and `haarpool info` show.
RUN = ("torch", "torch_geometric", "numpy", "scipy")
TRIAL = (*RUN, "scikit-learn", "grakel")
INSTALLATION = (*RUN, "scikit-learn", "rdkit", "grakel")


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
