"""What decorators say about classes, read from sources, so that nothing is imported."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Decorated(NamedTuple):
    """A class with a decorator.

    Attributes:
        name: Its name.
        doc: Its docstring.
        defaults: Parameters of its constructor that have a default.
        said: All arguments of the decorator.
    """

    name: str
    doc: str | None
    defaults: Mapping[str, Any]
    said: dict[str, Any]


def sources_with(decorator: str, package: str) -> Iterator[tuple[str, str]]:
    """Yield the names and sources of the modules of a folder that may use a decorator."""
    for module in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        spec = module.module_finder.find_spec(module.name, None)
        source = spec.loader.get_source(module.name)  # type: ignore[union-attr]
        if source is None:  # an installation without sources
            import_module(module.name)
        elif f"{decorator}(" in source or f"{decorator} as " in source:
            yield module.name, source


def find_decorated(source: str, decorator: Callable[..., Any]) -> Iterator[Decorated]:
    """Yield the classes of a module with a decorator, however it was imported.

    Raises:
        ValueError: An argument is no literal, or the constructor is in another file.
        TypeError: The decorator does not take the arguments.
    """
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = [one for node in imports for one in node.names if one.name == decorator.__name__]
    names = {decorator.__name__, *(one.asname for one in imported)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for cls in classes.values():
        for call in cls.decorator_list:
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in names:
                said = _arguments(call, decorator)
                has_options = said.get("options", ()) != ()
                defaults = _defaults(cls, classes) if has_options else {}
                yield Decorated(cls.name, ast.get_docstring(cls), defaults, said)


def _arguments(call: ast.Call, function: Callable[..., Any]) -> dict[str, Any]:
    values = map(ast.literal_eval, call.args)
    named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    bound = inspect.signature(function).bind(*values, **named)
    bound.apply_defaults()
    return bound.arguments


def _defaults(cls: ast.ClassDef, others: Mapping[str, ast.ClassDef]) -> dict[str, Any]:
    """Return the defaults of a constructor, that of the class or of a class of the same file."""
    for one in cls.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            named = [*one.args.posonlyargs, *one.args.args]
            first = len(named) - len(one.args.defaults)
            values = [*one.args.defaults, *one.args.kw_defaults]
            pairs = zip([*named[first:], *one.args.kwonlyargs], values, strict=True)
            return {p.arg: ast.literal_eval(v) for p, v in pairs if v is not None}
    bases = [ast.unparse(base) for base in cls.bases]
    if not bases:
        return {}
    if len(bases) > 1 or bases[0] not in others:
        raise ValueError(f"{cls.name} has the constructor of a class of another file")
    return _defaults(others[bases[0]], others)
