"""The gallery of examples: its order and the style of its pictures."""

from pathlib import Path
from typing import Any

import matplotlib
from figure_script import STYLE

ORDER = (
    "learnable",
    "cnn",
    "table",
    "polygons",
    "slice",
    "formula_to_c",
    "onnx_controller",
    "cartpole",
    "density",
    "invertible",
    "boundary_term",
    "lab",
)
"""The examples without `plot_`: the function in models, exact pieces, C and proofs, densities and inverses, the lab."""


def position(name: str) -> int:
    """Return the position of a script in the gallery; one that is not in `ORDER` is an error."""
    return ORDER.index(Path(name).stem.removeprefix("plot_"))


def apply_style(conf: dict[str, Any], name: str) -> None:
    """Give the pictures of an example the style of the pages."""
    matplotlib.rcParams.update(STYLE)
