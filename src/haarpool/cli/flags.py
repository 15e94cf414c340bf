"""From settings to flags: arguments made from dataclass fields, and flags in error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from haarpool.chains.recipe import Recipe
from haarpool.errors import HaarPoolError
from haarpool.training.config import RunConfig

# Parameters of the library that are no settings, or whose flag has another name.
_FLAGS = {
    "source": "DATASET",
    "targets": "--target",
    "smiles": "--smiles",
    "root": "--root",
    "task": "--task",
    "strict": "--strict",
    "preset": "--preset",
    "device": "--device",
    "resume": "--resume",
    "n_jobs": "--jobs",
    "cache": "--cache",
    "options": "--option",
    "backend": "--backend",
    "address": "--address",
}


def flag_of(name: str, metadata: Mapping[str, Any]) -> str:
    """Return the flag of a setting."""
    flag: str = metadata.get("flag", name)
    return "--" + flag.replace("_", "-")


def add_settings(
    group: Any, cls: type, names: Iterable[str], defaults: Mapping[str, Any] | None = None
) -> None:
    """Add arguments for fields of a settings class; an argument that is not given is None.

    Args:
        group: Argument group or parser.
        cls: `RunConfig` or `Recipe`.
        names: Names of the fields, in the order of the help text.
        defaults: Defaults for the help text that differ from those of the fields.
    """
    by_name = {one.name: one for one in fields(cls)}
    for name in names:
        metadata = by_name[name].metadata
        default = (defaults or {}).get(name, by_name[name].default)
        text = metadata["help"]
        kind: dict[str, Any]
        if isinstance(default, bool):
            kind = {"action": "store_const", "const": True}
        else:
            numeric = type(default) in (int, float) and "," not in metadata.get("metavar", "")
            kind = {"type": type(default)} if numeric else {}
            kind |= {
                key: metadata[key] for key in ("metavar", "choices", "type") if key in metadata
            }
            text += "" if default is None else f" (default: {default})"
        group.add_argument(flag_of(name, metadata), dest=name, help=text, **kind)


def setting_flag(name: str) -> str:
    """Return the flag of a parameter of the library."""
    return _all_flags().get(name, f"--{name}")


def _all_flags() -> dict[str, str]:
    settings = [one for cls in (Recipe, RunConfig) for one in fields(cls) if one.metadata]
    return {one.name: flag_of(one.name, one.metadata) for one in settings} | _FLAGS


def with_flags(error: HaarPoolError) -> str:
    """Return the message of an error with flags in the place of parameters.

    Example:
        >>> with_flags(HaarPoolError("epochs >= 1", "0", "pass sizes=[4, 1] or symmetrize=True"))
        'expected --epochs >= 1, got 0; pass --sizes 4,1 or --symmetrize'
    """
    flags = _all_flags()
    names = "|".join(flags)

    def assignment(match: re.Match[str]) -> str:
        name, value = match.groups()
        if (name, value) == ("top", "None"):
            return "--open"
        if value in ("", "True"):
            return flags[name]
        value = re.sub(r'"(\w+)": ', r"\1=", value)  # {"ratio": 0.8} -> {ratio=0.8}
        plain = re.sub(r'["\[\](){}]|(?<=,) ', "", value)  # "x" -> x and [16, 4] -> 16,4
        return f"{flags[name]} {plain}"

    def translate(text: str) -> str:
        # Not inside of paths, architectures and other words, which may be the user's, nor in
        # options of poolings and methods: a name such as ratio is another setting there.
        start = r"(?<![\w/.,:=-])(?<!--pooling )(?<!--option )"
        value = r'"[^"]*"|\[[^]]*\]|\([^)]*\)|\{[^}]*\}|[^\s,;)]*'
        text = re.sub(rf"{start}({names})=({value})", assignment, text)
        return re.sub(rf"^({names})(?= (?:>=|in [\[(0-9]|\"))", lambda m: flags[m[1]], text)

    return str(HaarPoolError(translate(error.expected), error.got, translate(error.remedy)))
