"""The exact piecewise-linear function that a network is: curves on a line, cells on a plane, proofs in any dimension.

NumPy only; more than two inputs need the solver HiGHS (extra `exact`).

>>> net = network([([[1.0], [2.0]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.5])])
>>> f = curve(net, -3, 3)
>>> f.pieces, f.knots.tolist()
(4, [-3.0, -1.0, 0.0, 1.0, 3.0])
"""

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.algebra import compose, inverse, solve
from plunit.pieces.combining import combination, difference
from plunit.pieces.curve import Curve
from plunit.pieces.drawing import draw_cells, draw_curve, draw_surface
from plunit.pieces.fixed.integers import FixedNetwork
from plunit.pieces.fixed.proving import error_bound
from plunit.pieces.fixed.quantizing import quantize
from plunit.pieces.fixed.subtracting import error_network
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.csv_table import load_csv, save_csv
from plunit.pieces.formats.geojson_map import save_geojson
from plunit.pieces.formats.json_text import load_json, save_json
from plunit.pieces.formats.loading import load
from plunit.pieces.formats.nnet_text import save_nnet
from plunit.pieces.formats.obj_mesh import save_obj
from plunit.pieces.formats.onnx_model import save_onnx
from plunit.pieces.formats.ply_mesh import save_ply
from plunit.pieces.formats.safetensors_file import save_safetensors
from plunit.pieces.formats.saving import save
from plunit.pieces.formats.sklearn_model import from_sklearn, to_sklearn
from plunit.pieces.formats.svg_picture import save_svg
from plunit.pieces.level import Level, level_set
from plunit.pieces.line import Counts, along, counts, curve, curves
from plunit.pieces.networks import Network, ensemble, network, plane
from plunit.pieces.polygons import Cells, cell_counts, cells
from plunit.pieces.proofs.asking import Undecided
from plunit.pieces.proofs.highs import Contradiction
from plunit.pieces.proofs.maximising import Optimum
from plunit.pieces.proofs.questions import Bounds, bounds, counterexample, distance, maximum, minimum
from plunit.pieces.proofs.steepness import is_monotone, lipschitz
from plunit.pieces.relu import to_relu
from plunit.pieces.scaling import rescaled
from plunit.pieces.simplifying import Simplified, simplify

__all__ = [
    "Activation",
    "Bounds",
    "Cells",
    "Contradiction",
    "Counts",
    "Curve",
    "FixedNetwork",
    "Level",
    "Network",
    "Optimum",
    "Simplified",
    "Undecided",
    "activation",
    "along",
    "bounds",
    "cell_counts",
    "cells",
    "combination",
    "compose",
    "counterexample",
    "counts",
    "curve",
    "curves",
    "difference",
    "distance",
    "draw_cells",
    "draw_curve",
    "draw_surface",
    "ensemble",
    "error_bound",
    "error_network",
    "from_sklearn",
    "inverse",
    "is_monotone",
    "level_set",
    "lipschitz",
    "load",
    "load_csv",
    "load_json",
    "maximum",
    "minimum",
    "network",
    "plane",
    "quantize",
    "rescaled",
    "save",
    "save_c",
    "save_csv",
    "save_geojson",
    "save_json",
    "save_nnet",
    "save_obj",
    "save_onnx",
    "save_ply",
    "save_safetensors",
    "save_svg",
    "simplify",
    "solve",
    "to_relu",
    "to_sklearn",
]
