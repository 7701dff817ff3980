"""The exact piecewise-linear function of a network: curves on a line, polygons on a plane, proofs in any dimension.

The input is a `Network`, the output a `Curve`, `Polygons`, a proved bound or a file. The rooms are layers; each imports
only from those above it:

    files of this folder             the core: `activation.py` evaluates units, `networks.py` has layers and networks,
                                     `graphs.py` makes layers of a graph, `c_programs.py` runs a network as its C does
    exact/                           curves and polygons
    proofs/, fixed/, segments/       questions in any dimension; integer networks; curves with few pieces
    formats/                         files, read and written

Open `activation.py` first, then `networks.py` and `exact/line_curves.py`. Only NumPy is required; proofs use a compiled
program if there is one.

>>> from plunit.pieces import activation, curve, network
>>> net = network([([[1.0], [2.0]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.5])])
>>> f = curve(net, -3, 3)
>>> f.pieces, f.knots.tolist()
(4, [-3.0, -1.0, 0.0, 1.0, 3.0])
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plunit.pieces import activation as activation

if TYPE_CHECKING:
    from plunit.pieces.activation import Activation as Activation
    from plunit.pieces.c_programs import FloatNetwork as FloatNetwork
    from plunit.pieces.exact.line_curves import Counts as Counts
    from plunit.pieces.exact.line_curves import Curve as Curve
    from plunit.pieces.exact.line_curves import along as along
    from plunit.pieces.exact.line_curves import counts as counts
    from plunit.pieces.exact.line_curves import curve as curve
    from plunit.pieces.exact.line_curves import curves as curves
    from plunit.pieces.exact.line_curves import solve as solve
    from plunit.pieces.exact.pictures import draw_curve as draw_curve
    from plunit.pieces.exact.pictures import draw_polygons as draw_polygons
    from plunit.pieces.exact.pictures import draw_slice as draw_slice
    from plunit.pieces.exact.polygon_set import Polygons as Polygons
    from plunit.pieces.exact.polygon_set import polygon_counts as polygon_counts
    from plunit.pieces.exact.polygon_set import polygons as polygons
    from plunit.pieces.fixed.error_bounds import error_bound as error_bound
    from plunit.pieces.fixed.integers import FixedNetwork as FixedNetwork
    from plunit.pieces.fixed.quantizing import quantize as quantize
    from plunit.pieces.formats.c_header import save_c as save_c
    from plunit.pieces.formats.csv_json import load_json as load_json
    from plunit.pieces.formats.csv_json import save_csv as save_csv
    from plunit.pieces.formats.csv_json import save_json as save_json
    from plunit.pieces.formats.exporter import save as save
    from plunit.pieces.formats.importer import JumpWarning as JumpWarning
    from plunit.pieces.formats.model_objects import from_keras as from_keras
    from plunit.pieces.formats.model_objects import from_sklearn as from_sklearn
    from plunit.pieces.formats.onnx_writing import save_onnx as save_onnx
    from plunit.pieces.formats.reading import load as load
    from plunit.pieces.formats.reading import load_nnet as load_nnet
    from plunit.pieces.formats.vnnlib import load_vnnlib as load_vnnlib
    from plunit.pieces.formats.vnnlib_networks import Specification as Specification
    from plunit.pieces.formats.vnnlib_networks import load_specification as load_specification
    from plunit.pieces.networks import Ensemble as Ensemble
    from plunit.pieces.networks import Layer as Layer
    from plunit.pieces.networks import Network as Network
    from plunit.pieces.networks import ensemble as ensemble
    from plunit.pieces.networks import network as network
    from plunit.pieces.networks import plane as plane
    from plunit.pieces.proofs.properties import Case as Case
    from plunit.pieces.proofs.properties import Condition as Condition
    from plunit.pieces.proofs.properties import Property as Property
    from plunit.pieces.proofs.questions import Bounds as Bounds
    from plunit.pieces.proofs.questions import Optimum as Optimum
    from plunit.pieces.proofs.questions import Undecided as Undecided
    from plunit.pieces.proofs.questions import bounds as bounds
    from plunit.pieces.proofs.questions import distance as distance
    from plunit.pieces.proofs.questions import maximum as maximum
    from plunit.pieces.proofs.questions import minimum as minimum
    from plunit.pieces.proofs.steepness import is_monotone as is_monotone
    from plunit.pieces.proofs.steepness import lipschitz as lipschitz
    from plunit.pieces.proofs.verdicts import Verdict as Verdict
    from plunit.pieces.proofs.verdicts import holds as holds
    from plunit.pieces.rewriting import difference as difference
    from plunit.pieces.rewriting import rescale as rescale
    from plunit.pieces.rewriting import to_relu as to_relu
    from plunit.pieces.segments.least_squares import Segments as Segments
    from plunit.pieces.segments.least_squares import Trial as Trial
    from plunit.pieces.segments.least_squares import fit_segments as fit_segments
    from plunit.pieces.segments.simplifying import Simplified as Simplified
    from plunit.pieces.segments.simplifying import simplify as simplify


def _modules() -> dict[str, str]:
    """Return the module of each public name, from the imports above, which only type checkers execute.

    So each name is listed once, with its type, and loaded on first use. Ordinary imports would run all rooms: each cell
    of the lab would then depend on every file of this package, and `plunit.sklearn` would start more slowly.
    """
    (block,) = (node for node in ast.parse(Path(__file__).read_text()).body if isinstance(node, ast.If))
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


_MODULES = _modules()
"""A module is loaded when one of its names is first used. To add a public name, add one import above."""


def __getattr__(name: str) -> Any:
    if name == "__all__":  # a constant would have to repeat the names for type checkers
        return sorted(["activation", *_MODULES])
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
