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
from plunit.pieces.formats.c_header import save_c
from plunit.pieces.formats.csv_table import load_csv, save_csv
from plunit.pieces.formats.json_text import load_json, save_json
from plunit.pieces.formats.loading import load
from plunit.pieces.formats.nnet_text import save_nnet
from plunit.pieces.formats.onnx_model import save_onnx
from plunit.pieces.formats.safetensors_file import save_safetensors
from plunit.pieces.formats.saving import save
from plunit.pieces.formats.sklearn_model import from_sklearn, to_sklearn
from plunit.pieces.level import Level, level_set
from plunit.pieces.line import Counts, along, counts, curve, curves
from plunit.pieces.networks import Network, ensemble, network, plane
from plunit.pieces.polygons import Cells, cell_counts, cells
from plunit.pieces.relu import to_relu

__all__ = [
    "Activation",
    "Cells",
    "Counts",
    "Curve",
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
    "distance",
    "draw_cells",
    "draw_curve",
    "draw_surface",
    "ensemble",
    "from_sklearn",
    "inverse",
    "level_set",
    "load",
    "load_csv",
    "load_json",
    "network",
    "plane",
    "save",
    "save_c",
    "save_csv",
    "save_json",
    "save_nnet",
    "save_onnx",
    "save_safetensors",
    "solve",
    "to_relu",
    "to_sklearn",
]
