"""What the paper says: its statements, in our words and in its order, for claims to refer to."""

from __future__ import annotations

from typing import NamedTuple

ADDRESS = "https://arxiv.org/abs/1809.09534"
TITLE = "PLU: The Piecewise Linear Unit Activation Function"

SECTIONS = {
    "2": "Fitting elementary functions",
    "3": "Fitting parametric functions",
    "4": "Fitting 3D surfaces",
    "5": "CIFAR-10",
    "6": "Invertible networks",
    "7": "Remarks",
    "": "Questions of ours",
}
"""The sections with experiments; the paper does not number its last one."""


class Statement(NamedTuple):
    """A sentence and the section where it stands; a theorem can be checked, but there is nothing to measure."""

    section: str
    sentence: str
    theorem: bool = False


STATEMENTS = {
    "sine-tanh": Statement("2", "On the sine, PLU and tanh reach similar losses."),
    "sine-relu": Statement("2", "On the sine, ReLU's loss is two orders of magnitude higher."),
    "sine-pieces": Statement("2", "Trained on the sine, PLU networks have more pieces than ReLU networks."),
    "curve-relu": Statement("3", "On the parametric curve, PLU fits much closer than ReLU."),
    "curve-tanh": Statement("3", "On the parametric curve, tanh performs as well as PLU."),
    "curve-five": Statement("3", "The ReLU network has 5 line segments on the parametric curve."),
    "curve-pieces": Statement("3", "PLU networks have abundantly more line segments there than ReLU networks."),
    "surface-relu": Statement("4", "On the surface, ReLU ends at a much higher loss than PLU."),
    "surface-tanh": Statement("4", "On the surface, PLU keeps up with tanh."),
    "surface-pieces": Statement("4", "On the surface, PLU networks have more linear pieces than ReLU networks."),
    "cifar-faster": Statement("5", "On CIFAR-10, tanh and PLU train faster than ReLU."),
    "cifar-identity": Statement("5", "The network with the identity does well in the first steps."),
    "cifar-favourable": Statement("5", "CIFAR-10 is more favourable to ReLU than sections 2-4."),
    "inverse-plu": Statement("6", "PLU is invertible, with an inverse defined for all numbers.", theorem=True),
    "inverse-others": Statement(
        "6", "ReLU has no inverse, leaky ReLU has one, and tanh's is defined on (-1, 1) only.", theorem=True
    ),
    "gradients-tanh": Statement("7", "tanh suffers from vanishing gradients."),
    "gradients-plu": Statement("7", "PLU does not suffer from vanishing gradients."),
    "dead": Statement("7", "PLU avoids ReLU's problem of dead units."),
}
