"""The exact piecewise-linear function of a network: curves on a line, polygons on a plane, proofs in any dimension.

A `Network` enters; a `Curve`, `Polygons`, a proved bound or a file leaves. Open `networks.py` first, then
`exact_curves.py`; `exact/` is the geometry, `proofs/` the questions, `fixed/` integers, `formats/` files, `segments/`
fits of data. NumPy only; more than two inputs need the solver HiGHS (extra `exact`). Proofs and formats are loaded when
used.

>>> net = network([([[1.0], [2.0]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.5])])
>>> f = curve(net, -3, 3)
>>> f.pieces, f.knots.tolist()
(4, [-3.0, -1.0, 0.0, 1.0, 3.0])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.drawing import draw_curve, draw_polygons
from plunit.pieces.exact.polygon_set import Polygons, polygon_counts, polygons
from plunit.pieces.exact_curves import Counts, Curve, along, compose, counts, curve, curves, inverse, solve
from plunit.pieces.networks import Ensemble, Layer, Network, ensemble, network, plane
from plunit.pieces.rewriting import combination, difference, rescaled, to_relu

if TYPE_CHECKING:
    from plunit.pieces.fixed.integers import FixedNetwork
    from plunit.pieces.fixed.proving import error_bound
    from plunit.pieces.fixed.quantizing import quantize
    from plunit.pieces.formats.c_header import save_c
    from plunit.pieces.formats.csv_json import load_csv, load_json, save_csv, save_json
    from plunit.pieces.formats.loading import load, load_nnet
    from plunit.pieces.formats.model_objects import from_keras, from_sklearn
    from plunit.pieces.formats.onnx_writing import save_onnx
    from plunit.pieces.formats.saving import save
    from plunit.pieces.formats.vnnlib import load_vnnlib
    from plunit.pieces.proofs.highs import Contradiction
    from plunit.pieces.proofs.maximising import Optimum, Undecided
    from plunit.pieces.proofs.properties import Case, Condition, Property
    from plunit.pieces.proofs.questions import Bounds, bounds, counterexample, distance, maximum, minimum
    from plunit.pieces.proofs.steepness import is_monotone, lipschitz
    from plunit.pieces.segments.fit import Segments, Trial, fit_segments
    from plunit.pieces.simplifying import Simplified, simplify

__all__ = [
    "Activation",
    "Bounds",
    "Case",
    "Condition",
    "Contradiction",
    "Counts",
    "Curve",
    "Ensemble",
    "FixedNetwork",
    "Layer",
    "Network",
    "Optimum",
    "Polygons",
    "Property",
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
    "load_csv",
    "load_json",
    "load_nnet",
    "load_vnnlib",
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

_LATER = {
    "Bounds": "proofs.questions",
    "Case": "proofs.properties",
    "Condition": "proofs.properties",
    "Contradiction": "proofs.highs",
    "FixedNetwork": "fixed.integers",
    "Optimum": "proofs.maximising",
    "Property": "proofs.properties",
    "Segments": "segments.fit",
    "Simplified": "simplifying",
    "Trial": "segments.fit",
    "Undecided": "proofs.maximising",
    "bounds": "proofs.questions",
    "counterexample": "proofs.questions",
    "distance": "proofs.questions",
    "error_bound": "fixed.proving",
    "fit_segments": "segments.fit",
    "from_keras": "formats.model_objects",
    "from_sklearn": "formats.model_objects",
    "is_monotone": "proofs.steepness",
    "lipschitz": "proofs.steepness",
    "load": "formats.loading",
    "load_csv": "formats.csv_json",
    "load_json": "formats.csv_json",
    "load_nnet": "formats.loading",
    "load_vnnlib": "formats.vnnlib",
    "maximum": "proofs.questions",
    "minimum": "proofs.questions",
    "quantize": "fixed.quantizing",
    "save": "formats.saving",
    "save_c": "formats.c_header",
    "save_csv": "formats.csv_json",
    "save_json": "formats.csv_json",
    "save_onnx": "formats.onnx_writing",
    "simplify": "simplifying",
}
"""The modules of names that are loaded at first use; the imports above are for type checkers."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
