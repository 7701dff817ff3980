"""Bijections of R^n, invertible networks and flows, for PyTorch.

Start with `flow.py`: `Flow` is the density of a bijection, and `Flow.fit` trains it, with points from `batches.py`.
`bijections/` has the contract and every layer, `invertible_network.py` builds networks, `contexts.py` makes them
conditional, `conversions.py` connects them to other libraries, and `saving.py` stores them in files.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    from plunit.base.errors import missing

    raise missing(error, "torch", user="plunit.invertible") from None

from plunit.invertible.bijections.bijection import Bijection, Elementwise, Leaf
from plunit.invertible.bijections.chain import Chain, Frozen, Inverse
from plunit.invertible.bijections.elementwise import PLU, LeakyReLU, ScaleShift, Tanh
from plunit.invertible.bijections.linear import LU, Orthogonal, Permutation
from plunit.invertible.bijections.smooth_plu import RHO, Annealing, SmoothPLU
from plunit.invertible.contexts import Conditional
from plunit.invertible.conversions import BijectionTransform, to_flow
from plunit.invertible.flow import Diverged, Fitted, Flow
from plunit.invertible.invertible_network import (
    ActivationMaker,
    Certificate,
    InvertibleNetwork,
    alternating,
    conditional,
    density,
)
from plunit.invertible.toys import TOYS, toy

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
    "Inverse",
    "InvertibleNetwork",
    "Leaf",
    "LeakyReLU",
    "Orthogonal",
    "Permutation",
    "ScaleShift",
    "SmoothPLU",
    "Tanh",
    "alternating",
    "conditional",
    "density",
    "to_flow",
    "toy",
]
