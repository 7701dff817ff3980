"""The exact piecewise-linear function of a network: curves on a line, polygons on a plane, proofs in any dimension.

A `Network` enters; a `Curve`, `Polygons`, a proved bound or a file leaves. Open `networks.py` first, then
`exact_curves.py`; `exact/` is the geometry, `proofs/` the questions, `fixed/` integers, `formats/` files, `segments/`
fits of data. NumPy only; proofs run in a compiled program where there is one.

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
    from plunit.pieces.formats.importer import JumpWarning
    from plunit.pieces.formats.model_objects import from_keras, from_sklearn
    from plunit.pieces.formats.onnx_writing import save_onnx
    from plunit.pieces.formats.reading import load, load_nnet
    from plunit.pieces.formats.vnnlib import load_vnnlib
    from plunit.pieces.formats.vnnlib_networks import Specification, load_specification
    from plunit.pieces.pictures import draw_curve, draw_polygons, draw_slice
    from plunit.pieces.proofs.holding import Verdict, holds
    from plunit.pieces.proofs.properties import Case, Condition, Property
    from plunit.pieces.proofs.questions import (
        Bounds,
        Optimum,
        Undecided,
        bounds,
        counterexample,
        distance,
        maximum,
        minimum,
    )
    from plunit.pieces.proofs.steepness import is_monotone, lipschitz
    from plunit.pieces.rewriting import difference, rescaled, to_relu
    from plunit.pieces.segments.least_squares import Segments, Trial, fit_segments
    from plunit.pieces.simplifying import Simplified, simplify

_LATER = {
    "pictures": "draw_curve draw_polygons draw_slice",
    "fixed.integers": "FixedNetwork",
    "fixed.proving": "error_bound",
    "fixed.quantizing": "quantize",
    "formats.c_header": "save_c",
    "formats.csv_json": "load_json save_csv save_json",
    "formats.reading": "load load_nnet",
    "formats.model_objects": "from_keras from_sklearn",
    "formats.onnx_writing": "save_onnx",
    "formats.exporter": "save",
    "formats.importer": "JumpWarning",
    "formats.vnnlib": "load_vnnlib",
    "formats.vnnlib_networks": "Specification load_specification",
    "proofs.holding": "Verdict holds",
    "proofs.properties": "Case Condition Property",
    "proofs.questions": "Bounds Optimum Undecided bounds counterexample distance maximum minimum",
    "proofs.steepness": "is_monotone lipschitz",
    "rewriting": "difference rescaled to_relu",
    "segments.least_squares": "Segments Trial fit_segments",
    "simplifying": "Simplified simplify",
}
"""Modules that are loaded when one of their names is used first; the imports above are for type checkers.

A stored cell of the lab depends on all that is imported here (see `plunit.lab.cell`): so not on proofs and files.
"""

_MODULES = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = [
    "Activation",
    "Bounds",
    "Case",
    "Condition",
    "Counts",
    "Curve",
    "Ensemble",
    "FixedNetwork",
    "JumpWarning",
    "Layer",
    "Network",
    "Optimum",
    "Polygons",
    "Property",
    "Segments",
    "Simplified",
    "Specification",
    "Trial",
    "Undecided",
    "Verdict",
    "activation",
    "along",
    "bounds",
    "compose",
    "counterexample",
    "counts",
    "curve",
    "curves",
    "difference",
    "distance",
    "draw_curve",
    "draw_polygons",
    "draw_slice",
    "ensemble",
    "error_bound",
    "fit_segments",
    "from_keras",
    "from_sklearn",
    "holds",
    "inverse",
    "is_monotone",
    "lipschitz",
    "load",
    "load_json",
    "load_nnet",
    "load_specification",
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


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
