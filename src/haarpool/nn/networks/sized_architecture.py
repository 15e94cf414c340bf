"""`SizedArchitecture`: architectures of a name and sizes, such as `haarnet:width=128,levels=3`."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from typing import Any, ClassVar, Self

from haarpool._types import Domain
from haarpool._validate import choice, whole_number
from haarpool.errors import HaarPoolError
from haarpool.nn.strings.architecture import MAX_WIDTH, AnyArchitecture

AUTO = "auto"  # the text of None, in a string


@dataclass(frozen=True)
class SizedArchitecture(AnyArchitecture):
    """A network of a name and sizes: its string is the name, with sizes that differ behind a colon.

    A subclass is a frozen dataclass of sizes, whole numbers or booleans. `None` is "auto": chosen
    by the data.

    Attributes:
        width: Width of all layers; `None` for the default of `build_model`.
        name: The name.
        network: Name of the class of the network.
        home: The module of that class.
        limits: Least and largest value of each whole number.
        example: A string, for errors.
    """

    width: int | None = None
    name: ClassVar[str]
    network: ClassVar[str]
    home: ClassVar[str] = "haarpool.nn"
    limits: ClassVar[dict[str, tuple[int, int]]] = {}
    example: ClassVar[str] = "width=128,levels=3"
    default_domain: ClassVar[Domain] = "vertex"

    def __post_init__(self) -> None:
        """Check the sizes."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(one.default, bool):
                choice(one.name, value, (True, False))
            elif not (value is None and one.default is None):
                value = whole_number(one.name, value, *self._limits(one.name))
                object.__setattr__(self, one.name, value)

    @classmethod
    def _limits(cls, name: str) -> tuple[int, int]:
        return (1, MAX_WIDTH) if name == "width" else cls.limits[name]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the architecture of a string."""
        sizes: dict[str, Any] = {}
        rest = text.removeprefix(cls.name)
        colon, parts = (":", rest[1:].split(",")) if rest.startswith(":") else ("", [rest])
        for i, part in enumerate(parts if rest.strip(":") else []):
            try:
                name, value = cls._parse_size(part)
                if name in sizes:
                    raise ValueError(f"with {name} once")
                sizes[name] = value
            except ValueError as error:
                marked = ",".join(f"»{one}«" if i == k else one for k, one in enumerate(parts))
                remedy = f"write for example {cls.name}:{cls.example}"
                got = cls.name + colon + marked
                raise HaarPoolError(str(error), got, remedy, parameter="arch") from None
        return cls(**sizes)

    @classmethod
    def _parse_size(cls, part: str) -> tuple[str, int | bool | None]:
        """Return name and value of a part; a ValueError says what is expected."""
        defaults = {one.name: one.default for one in fields(cls)}
        name, _, text = part.partition("=")
        if name in defaults and isinstance(defaults[name], bool):
            if text not in ("true", "false"):
                raise ValueError(f"with true or false for {name}")
            return name, text == "true"
        if name in defaults and name != "width" and defaults[name] is None and text == AUTO:
            return name, None
        if name not in defaults or not re.fullmatch("[0-9]{1,99}", text):
            names = ", ".join(defaults)
            raise ValueError(f"{cls.name}:NAME=NUMBER,... with names out of {names}")
        low, high = cls._limits(name)
        if not low <= int(text) <= high:
            raise ValueError(f"with a number of {low} to {high} for {name}")
        return name, int(text)

    @property
    def max_width(self) -> int:
        """The width, 0 if it names none."""
        return self.width or 0

    def with_width(self, width: int) -> Self:
        """Return the architecture with a width, if it names none."""
        return replace(self, width=self.width or width)

    def build(
        self,
        in_channels: int,
        out_channels: int,
        *,
        tied: object = None,
        options: object = None,
        **settings: Any,
    ) -> Any:
        """Make the network, which shares no weights by `tied`; its layers have no options."""
        if tied is not None:
            expected, remedy = f"None for {self.name}", "leave it out"
            raise HaarPoolError(expected, f"{tied!r}", remedy, parameter="tied")
        network = getattr(import_module(self.home), self.network)
        return network(in_channels, out_channels, **asdict(self), **settings)

    def __str__(self) -> str:
        changed = [
            f"{one.name}={AUTO if value is None else str(value).lower()}"
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default
        ]
        return self.name + (":" + ",".join(changed) if changed else "")
