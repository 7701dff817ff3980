"""The exact piecewise-linear function that a network is: curves on a line, cells on a plane. NumPy only.

>>> net = network([([[1.0], [2.0]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.5])])
>>> f = curve(net, -3, 3)
>>> f.pieces, f.knots.tolist()
(4, [-3.0, -1.0, 0.0, 1.0, 3.0])
"""

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.algebra import compose, distance, inverse, solve
from plunit.pieces.curve import Curve
from plunit.pieces.drawing import draw_cells, draw_curve, draw_surface
from plunit.pieces.fixed.integers import FixedNetwork
from plunit.pieces.fixed.proving import error_bound
from plunit.pieces.fixed.quantizing import quantize
from plunit.pieces.fixed.subtracting import difference
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.csv_table import load_csv, save_csv
from plunit.pieces.formats.json_text import load_json, save_json
from plunit.pieces.formats.onnx_model import save_onnx
from plunit.pieces.level import Level, level_set
from plunit.pieces.line import Counts, along, counts, curve, curves
from plunit.pieces.networks import Network, ensemble, network, plane
from plunit.pieces.polygons import Cells, cell_counts, cells
from plunit.pieces.scaling import rescaled

__all__ = [
    "Activation",
    "Cells",
    "Counts",
    "Curve",
    "FixedNetwork",
    "Level",
    "Network",
    "activation",
    "along",
    "cell_counts",
    "cells",
    "compose",
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
    "inverse",
    "level_set",
    "load_csv",
    "load_json",
    "network",
    "plane",
    "quantize",
    "rescaled",
    "save_c",
    "save_csv",
    "save_json",
    "save_onnx",
    "solve",
]
