"""Bijections of R^n, invertible networks and flows, for PyTorch."""

from plunit.invertible.anneal import BANDWIDTH, RHO, Annealing
from plunit.invertible.bijection import Bijection, Chain, Inverse
from plunit.invertible.certificate import Certificate
from plunit.invertible.elementwise import PLU, LeakyReLU, Tanh
from plunit.invertible.flow import Diverged, Flow
from plunit.invertible.linear import LU, Orthogonal, Permutation, ScaleShift
from plunit.invertible.network import InvertibleNetwork, alternating, density
from plunit.invertible.reversible import Reversible
from plunit.invertible.smooth import SmoothPLU
from plunit.invertible.toys import TOYS, toy
from plunit.invertible.transform import BijectionTransform

__all__ = [
    "BANDWIDTH",
    "LU",
    "PLU",
    "RHO",
    "TOYS",
    "Annealing",
    "Bijection",
    "BijectionTransform",
    "Certificate",
    "Chain",
    "Diverged",
    "Flow",
    "Inverse",
    "InvertibleNetwork",
    "LeakyReLU",
    "Orthogonal",
    "Permutation",
    "Reversible",
    "ScaleShift",
    "SmoothPLU",
    "Tanh",
    "alternating",
    "density",
    "toy",
]
