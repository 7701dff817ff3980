"""The exact piecewise-linear function of a network: curves on a line, polygons on a plane, proofs in any dimension.

A `Network` enters; a `Curve`, `Polygons`, a proved bound or a file leaves. Open `networks.py` first, then
`exact_curves.py`; `exact/` is the geometry, `proofs/` the questions, `fixed/` integers, `formats/` files, `segments/`
fits of data. NumPy only; more than two inputs need the solver HiGHS (extra `exact`).

>>> net = network([([[1.0], [2.0]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.5])])
>>> f = curve(net, -3, 3)
>>> f.pieces, f.knots.tolist()
(4, [-3.0, -1.0, 0.0, 1.0, 3.0])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.exact.polygon_set import Polygons, polygon_counts, polygons
from plunit.pieces.exact_curves import Counts, Curve, along, compose, counts, curve, curves, inverse, solve
from plunit.pieces.networks import Ensemble, Layer, Network, ensemble, network, plane

if TYPE_CHECKING:
    from plunit.pieces.fixed.integers import FixedNetwork
    from plunit.pieces.fixed.proving import error_bound
    from plunit.pieces.fixed.quantizing import quantize
    from plunit.pieces.formats.c_header import save_c
    from plunit.pieces.formats.csv_json import load_json, save_csv, save_json
    from plunit.pieces.formats.exporter import save
    from plunit.pieces.formats.loading import load
    from plunit.pieces.formats.model_objects import from_keras, from_sklearn
    from plunit.pieces.formats.onnx_writing import save_onnx
    from plunit.pieces.pictures import draw_curve, draw_polygons
    from plunit.pieces.proofs.highs import Contradiction
    from plunit.pieces.proofs.maximising import Optimum, Undecided
    from plunit.pieces.proofs.questions import Bounds, bounds, counterexample, distance, maximum, minimum
    from plunit.pieces.proofs.steepness import is_monotone, lipschitz
    from plunit.pieces.rewriting import combination, difference, rescaled, to_relu
    from plunit.pieces.segments.least_squares import Segments, Trial, fit_segments
    from plunit.pieces.simplifying import Simplified, simplify

__all__ = [
    "Activation",
    "Bounds",
    "Contradiction",
    "Counts",
    "Curve",
    "Ensemble",
    "FixedNetwork",
    "Layer",
    "Network",
    "Optimum",
    "Polygons",
    "Segments",
    "Simplified",
    "Trial",
    "Undecided",
    "activation",
    "along",
    "bounds",
    "combination",
    "compose",
    "counterexample",
    "counts",
    "curve",
    "curves",
    "difference",
    "distance",
    "draw_curve",
    "draw_polygons",
    "ensemble",
    "error_bound",
    "fit_segments",
    "from_keras",
    "from_sklearn",
    "inverse",
    "is_monotone",
    "lipschitz",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "network",
    "plane",
    "polygon_counts",
    "polygons",
    "quantize",
    "rescaled",
    "save",
    "save_c",
    "save_csv",
    "save_json",
    "save_onnx",
    "simplify",
    "solve",
    "to_relu",
]

_LATER = """
    pictures rewriting simplifying segments.least_squares fixed.integers fixed.quantizing fixed.proving proofs.highs
    proofs.maximising proofs.questions proofs.steepness formats.csv_json formats.model_objects formats.c_header
    formats.onnx_writing formats.exporter formats.loading
"""
"""The modules that define the names of `__all__` that are not imported above.

A stored cell of the lab depends on all that is imported above (see `plunit.lab.cell`): so not on proofs and files.
"""


def __getattr__(name: str) -> Any:
    for module in _LATER.split() if name in __all__ else ():
        found = getattr(import_module(f"{__name__}.{module}"), name, None)
        if getattr(found, "__module__", "") == f"{__name__}.{module}":
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
