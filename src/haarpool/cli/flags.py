"""From settings to flags: arguments made from dataclass fields, and the words of the shell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from haarpool.chains.recipe import Recipe
from haarpool.errors import python_words
from haarpool.training.config import RunConfig

# Parameters of the library that are no settings.
_SAME_NAME = ("smiles", "root", "task", "strict", "preset", "device", "cache", "backend", "address")
_FLAGS = {
    "num_levels": "--levels",
    "source": "DATASET",
    "targets": "--target",
    "resume": "haarpool train --resume",
    "train_run": "`haarpool train`",
    "n_jobs": "--jobs",
    "options": "--option",
} | {name: f"--{name}" for name in _SAME_NAME}


# Commands that list the values of a setting, for its help text.
_LISTS = {"method": "haarpool methods", "pooling": "haarpool methods --layers"}


def flag_of(name: str) -> str:
    """Return the flag of a parameter."""
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


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
        text = metadata["help"] + (f", see `{_LISTS[name]}`" if name in _LISTS else "")
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
        group.add_argument(flag_of(name), dest=name, help=text, **kind)


def comma_separated(text: str) -> list[str]:
    """Return the names in a text such as "a,b"."""
    return [name.strip() for name in text.split(",") if name.strip()]


def shell_words(name: str, value: Any = ...) -> str:
    """Return a parameter, or the passing of a value to it, as the shell writes it.

    Example:
        >>> shell_words("epochs"), shell_words("sizes", [4, 1]), shell_words("symmetrize", True)
        ('--epochs', '--sizes 4,1', '--symmetrize')
        >>> shell_words("chain.ratio", 0.5), shell_words("options.n_init", 3)
        ('--ratio 0.5', '--option n_init=3')
    """
    own, _, entry = name.removeprefix("chain.").partition(".")  # parameters of a chain have flags
    if (own, value) == ("top", None):
        return "--open"
    settings = [one.name for cls in (Recipe, RunConfig) for one in fields(cls) if one.metadata]
    if own not in (*_FLAGS, *settings):
        return python_words(name, value)
    flag = flag_of(own)
    if entry and value is ...:
        return f"{entry} of {flag}"
    if entry:
        value = {entry: value}
    if isinstance(value, Mapping):
        value = [f"{key}={one}" for key, one in value.items()]
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return flag if value is ... or value is True else f"{flag} {value}"
