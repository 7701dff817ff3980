"""Bijections of R^n, invertible networks and flows, for PyTorch."""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    from plunit.extras import missing

    raise missing(error, "torch", user="plunit.invertible") from None

from plunit.invertible.anneal import RHO, Annealing
from plunit.invertible.axes import Permutation, ScaleShift
from plunit.invertible.bijection import Bijection, Elementwise, Leaf
from plunit.invertible.certificate import Certificate
from plunit.invertible.chain import Chain, Inverse
from plunit.invertible.contexts import Conditional, conditional
from plunit.invertible.converting import to_flow
from plunit.invertible.elementwise import PLU, LeakyReLU, Tanh
from plunit.invertible.flow import Flow
from plunit.invertible.frozen import Frozen
from plunit.invertible.householder import Householder
from plunit.invertible.likelihood import Diverged, Fitted
from plunit.invertible.linear import LU, Orthogonal
from plunit.invertible.network import ActivationMaker, InvertibleNetwork, alternating, density
from plunit.invertible.reversible import Reversible
from plunit.invertible.smooth import SmoothPLU
from plunit.invertible.toys import TOYS, toy
from plunit.invertible.transform import BijectionTransform

__all__ = [
    "LU",
    "PLU",
    "RHO",
    "TOYS",
    "ActivationMaker",
    "Annealing",
    "Bijection",
    "BijectionTransform",
    "Certificate",
    "Chain",
    "Conditional",
    "Diverged",
    "Elementwise",
    "Fitted",
    "Flow",
    "Frozen",
    "Householder",
    "Inverse",
    "InvertibleNetwork",
    "Leaf",
    "LeakyReLU",
    "Orthogonal",
    "Permutation",
    "Reversible",
    "ScaleShift",
    "SmoothPLU",
    "Tanh",
    "alternating",
    "conditional",
    "density",
    "to_flow",
    "toy",
]
