"""The list of readers: what reads a file, a folder, a name or Python objects."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from haarpool._modules import load_entry_points
from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs


class Reader:
    """A kind of source of graphs: what it answers to, and how it is read.

    A reader is a subclass in a file of this folder, with `@register` above it. `haarpool --help`
    imports all of these files, so they import numpy and what else is slow inside methods.

    Attributes:
        phrase: What it reads, for help texts and errors; "" if its names say it.
        suffixes: How names of its files end, in lower case, such as ".csv" or ".sdf.gz".
        names: Names of its datasets. If there are any, `NAME` also finds a file `NAME` with one of
            the suffixes in a folder of datasets.
        generates: `read` gets the name of a dataset without file, and makes its graphs.
        aliases: Other names, in lower case, and what they mean.
        content: What `find_in` looks for in a folder, for errors.
        tasks: Tasks for which its labels may be used, and so for others that read labels like
            these; none are all.
        modules: Modules that it imports and that take seconds.
        objects: A Python object that it converts, in words; "" if it converts none.
    """

    phrase: str = ""
    suffixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    generates: bool = False
    aliases: Mapping[str, str] = {}
    content: str = ""
    tasks: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    objects: str = ""

    def read(self, source: Any, task: Any = None, *args: Any, **options: Any) -> Graphs:
        """Read all graphs from `source`: the path that was found, or a name if it is no file.

        A reader names the options that it takes, as keywords after `task`: "smiles", "targets",
        "strict", "seed" and "progress" as in `read_graphs`; "labels" is False if labels are not
        needed and may be anything. The graphs need not be checked, see `check_graphs`.
        """
        raise NotImplementedError

    def stream(self, source: Any, block: int, *args: Any, **options: Any) -> Iterator[Graphs]:
        """Read blocks of `block` graphs, labels not needed; here by reading all graphs first."""
        import numpy as np

        from haarpool.datasets.checks import check_graphs

        graphs = check_graphs(self.read(source, **options), self, source=source)
        for first in range(0, len(graphs), block):
            yield graphs.take(np.arange(first, min(first + block, len(graphs))))

    def columns(self, path: Path, smiles: str | None = None) -> list[str] | None:
        """Return the columns of a table besides the one of SMILES; None if it is no table."""
        return None

    def find_in(self, folder: Path, name: str) -> Path | None:
        """Return what to read in the folder of the dataset `name`, or in its folder "raw"."""
        return None

    def url(self, name: str) -> str:
        """Return the address of the file of a dataset; "" if it has none."""
        return ""

    def check_download(self, file: Path) -> None:
        """Raise an OSError if a file that was downloaded is damaged."""

    def converts(self, one: Any) -> bool:
        """Return whether `convert` takes a list of objects like this one."""
        return False

    def convert(
        self, objects: Sequence[Any], name: str, task: Any = None, *, labels: bool = True
    ) -> Graphs:
        """Convert Python objects, one per graph, to a dataset `name`; `labels` is as in `read`."""
        raise NotImplementedError

    def sample(self, folder: Path) -> Any:
        """Return a small source for tests, as a file in `folder`, a name or objects; None if none.

        Parametrised tests read it, and train and predict with it: it needs a few graphs per class.
        """
        return None

    def __str__(self) -> str:
        return type(self).__qualname__

    @cached_property
    def options(self) -> frozenset[str]:
        """Names of the options that `read` takes."""
        return frozenset(list(inspect.signature(self.read).parameters)[2:])

    def supported(self, **options: Any) -> dict[str, Any]:
        """Return those of some options that `read` takes."""
        return {name: value for name, value in options.items() if name in self.options}


_READERS: dict[str, Reader] = {}


_Class = TypeVar("_Class", bound=type[Reader])


def register(cls: _Class) -> _Class:
    """Register a reader, checked; no other one may answer to the same suffixes or names.

    Example:
        >>> @register
        ... class Edges(Reader):
        ...     phrase, suffixes = "text file of edges", (".mine",)
        >>> find_by_suffix(Path("a.MINE")).phrase
        'text file of edges'
        >>> del _READERS["Edges"]
    """
    _check(cls)
    for other in [type(reader) for reader in readers()]:
        if (other.__module__, other.__qualname__) == (cls.__module__, cls.__qualname__):
            continue  # the same one again, for example from a notebook
        mine, theirs = ({s.lower() for s in (*one.suffixes, *one.names)} for one in (cls, other))
        same = mine & theirs
        if same or other.__qualname__ == cls.__qualname__:
            both = " and ".join(f"{one.__qualname__} of {one.__module__}" for one in (other, cls))
            got = f"{', '.join(sorted(same)) or 'the same class name'} in {both}"
            remedy = "choose another one in one of the two"
            raise HaarPoolError("readers with different suffixes and names", got, remedy)
    _READERS[cls.__qualname__] = cls()
    return cls


def _check(cls: type[Reader]) -> None:
    """Raise an error if the attributes of a reader have another form than in `Reader`."""
    for name in ("suffixes", "names", "tasks", "modules"):
        value = getattr(cls, name)
        if not isinstance(value, tuple) or not all(isinstance(one, str) for one in value):
            remedy = 'write it with a comma, as in (".csv",)'
            raise HaarPoolError(f"{name} of {cls.__qualname__} as a tuple", f"{value!r}", remedy)
    for suffix in cls.suffixes:
        if not suffix.startswith(".") or suffix != suffix.lower():
            expected = f"suffixes of {cls.__qualname__} in lower case that start with a dot"
            raise HaarPoolError(expected, f"{suffix!r}", 'write for example ".csv"')
    finds = cls.find_in is not Reader.find_in
    if not (cls.suffixes or cls.names or cls.objects or finds):
        expected = f"suffixes, names or objects of {cls.__qualname__}, or a method find_in"
        raise HaarPoolError(expected, "none", "say what it reads")


def readers() -> list[Reader]:
    """Return all registered readers."""
    return list(_READERS.values())


def sources() -> str:
    """Return what can be read, in words.

    Example:
        >>> "CSV file with SMILES" in sources()
        True
    """
    return ", ".join(["dataset name", *(one.phrase for one in readers() if one.phrase)])


def find_by_suffix(path: Path) -> Reader | None:
    """Return the reader of files with this name, the one with the longest suffix; None if none."""
    ends = [(s, one) for one in readers() for s in one.suffixes if path.name.lower().endswith(s)]
    return max(ends, key=lambda end: len(end[0]))[1] if ends else None


def find_by_name(name: str) -> tuple[Reader, str] | None:
    """Return the reader of a named dataset and the name as published; None if it is unknown.

    Args:
        name: A name in upper or lower case, or an alias.

    Example:
        >>> find_by_name("nci1")[1], find_by_name("mutagen")[1], find_by_name("no such dataset")
        ('NCI1', 'Mutagenicity', None)
    """
    if (found := _find(name)) is None:
        load_entry_points("haarpool.readers")
        found = _find(name)
    return found


def _find(name: str) -> tuple[Reader, str] | None:
    name = full_name(name).lower()
    known = ((one, full) for one in readers() for full in one.names)
    return next((pair for pair in known if pair[1].lower() == name), None)


def full_name(name: str) -> str:
    """Return the name that an alias means; other names unchanged."""
    return next((r.aliases[name.lower()] for r in readers() if name.lower() in r.aliases), name)
