"""Peers by the recipes of their authors, for the pages on the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from haarpool.comparison.statistics import Estimate
from paper.results import Experiment, spread

OWN_RECIPE = "-own"  # end of the name of a row


class PeerScore(NamedTuple):
    """A peer by the recipe of its authors on a dataset, beside its published number.

    Attributes:
        text: Both numbers.
        is_inside: Whether our interval contains the published number.
        is_quoted: Whether the number is not of its authors, but from the paper of EigenPool.
    """

    text: str
    is_inside: bool
    is_quoted: bool


def recipe_line(table1: Sequence[Experiment]) -> str:
    """Say which published numbers peers reach by the recipes of their authors."""
    recipes = list(find_recipes(table1))
    outside = [recipe.text for recipe in recipes if not recipe.is_inside]
    return f"{count_recipes(recipes)}{'; outside: ' * bool(outside)}{'; '.join(outside)}."


def count_recipes(recipes: Sequence[PeerScore]) -> str:
    """Say how many published numbers peers reach by the recipes of their authors."""
    counts = []
    for is_quoted in (False, True):
        inside = [one.is_inside for one in recipes if one.is_quoted == is_quoted]
        counts.append(f"{sum(inside)} of {len(inside)}")
    own, quoted = counts
    return (
        "Peers by the recipes of their authors, with at most 12,000 steps: our intervals contain "
        f"{own} published numbers of the authors, and {quoted} that the paper of EigenPool gives "
        "for them"
    )


def find_recipes(table1: Sequence[Experiment]) -> Iterator[PeerScore]:
    """Yield the peers with their own recipes that have a published number."""
    for one in table1:
        for method, value in own_recipes(one).items():
            if published := one.published(method):
                text = f"{peer_title(one, method)} on {one.name}, {spread(value)} instead of "
                inside = value.contains(published.value)
                yield PeerScore(f"{text}{published}", inside, published.mark == "*")


def best_recipes(table1: Sequence[Experiment]) -> str:
    """Say which peer is the best by the recipe of its authors, for each dataset."""
    texts = []
    for one in table1:
        if values := own_recipes(one):
            best = max(values, key=lambda method: values[method].mean)
            texts.append(f"{one.name} {spread(values[best])}, {peer_title(one, best)}")
    return f"The best peers by these recipes, in percent: {'; '.join(texts) or 'not run yet'}"


def own_recipes(one: Experiment) -> dict[str, Estimate]:
    """Return the complete results of peers by the recipes of their authors."""
    names = (name for name in one.cells if name.endswith(OWN_RECIPE))
    return {name: value for name in names if (value := one.complete(name))}


def peer_title(one: Experiment, method: str) -> str:
    """Return the name of a peer without that of its recipe."""
    return one.methods[method].title.removesuffix(", own recipe")
