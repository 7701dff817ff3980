"""A figure with its caption and its description, and how it is saved: PNG, SVG for light and dark screens, a URL."""

from __future__ import annotations

import base64
import io
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from plunit.base.files import shorten_name, write_atomically

__all__ = ["Picture"]

_DARK = (
    "<style>text{font-family:'DejaVu Sans',Verdana,sans-serif}@media (prefers-color-scheme:dark){"
    "text{fill:#e6e9ed!important}"
    "[style*='fill: #ffffff']{fill:#1d232a!important}"
    "[style*='stroke: #000000']{stroke:#e6e9ed!important}"
    "[style*='stroke: #b0b0b0']{stroke:#7d8894!important}"
    "use[style*='fill: #000000'],path[style*='fill: #000000']{fill:#e6e9ed!important}}</style>"
)
"""Paper, ink and grid of a figure for readers with a dark screen; data keep their colours."""


_PATH = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\d\.\d\d)\d+")  # a hundredth of a point is more than a screen can show
_LARGE = 90_000
_SAFE = " /:;,=()!@$*+[]{}|~?-_.'\n"  # what may stand in a quoted URL as it is


@dataclass(frozen=True)
class Picture:
    """A figure, its file name, its caption, and a description in words for readers who cannot see it."""

    name: str
    caption: str
    alt: str
    figure: Figure


def save(picture: Picture, folder: Path) -> str:
    """Write the figure as PNG and SVG, the same bytes each time; return the SVG, or a WebP if it is large, as a URL."""
    if engine := picture.figure.get_layout_engine():  # find the places of axes and legends once, not for every file
        engine.execute(picture.figure)
        picture.figure.set_layout_engine("none")
    png, svg = io.BytesIO(), io.StringIO()
    picture.figure.savefig(png, format="png", metadata={"Software": None})
    picture.figure.savefig(svg, format="svg", metadata={"Date": None})
    head, defs, rest = svg.getvalue().partition("<defs>")
    text = (head + _DARK + defs + _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), rest)).encode()
    for kind, content in (("png", png.getvalue()), ("svg", text)):
        write_atomically(folder / f"{shorten_name(picture.name)}.{kind}", content)
    if len(text) <= _LARGE:
        return "data:image/svg+xml," + urllib.parse.quote(text, safe=_SAFE)
    webp = io.BytesIO()
    Image.open(png).convert("RGB").save(webp, "webp", quality=80, method=6)
    return "data:image/webp;base64," + base64.b64encode(webp.getvalue()).decode()
