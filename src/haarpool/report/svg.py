"""Figures of matplotlib as inline SVG that takes the text colour of the page."""

from __future__ import annotations

import re
from html import escape
from io import StringIO
from typing import Any

import numpy as np
from matplotlib.collections import Collection, QuadMesh
from matplotlib.figure import Figure

from haarpool.plot import INK

MAX_VECTORS = 400  # shapes in one picture; pixels take less space for more
STYLE: dict[Any, Any] = {  # of matplotlib
    "font.size": 8.5,
    "svg.fonttype": "none",  # text stays text: small, and screen readers can read it
    "svg.hashsalt": "haarpool",  # the same picture gives the same bytes
    "savefig.transparent": True,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
}


def as_svg(figure: Figure, name: str, label: str, dpi: int = 192) -> str:
    """Return a figure as an inline `<svg>`.

    Args:
        figure: The figure. Lines and text in `INK` take the text colour of the page.
        name: Prefix of all ids, unique in the page.
        label: Text for screen readers.
        dpi: Pixels per inch of what is drawn as pixels.
    """
    for artist in figure.findobj(Collection):
        shapes = max(len(np.asarray(artist.get_offsets())), len(artist.get_paths()))
        # A colour bar drawn as a mesh shows gaps between its colours.
        if shapes > MAX_VECTORS or isinstance(artist, QuadMesh):
            artist.set_rasterized(True)
    buffer = StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", dpi=dpi, metadata=no_metadata)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    head = f'<svg role="img" aria-label="{escape(label)}"'
    return text.replace("<svg", head, 1)
