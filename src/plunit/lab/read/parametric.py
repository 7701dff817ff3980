"""Section 3: a parametric curve in the plane, fitted by networks of four hidden layers with five units each.

The paper does not state the domain of t. The literal reading is the one of section 2; one period of the curve is what
the paper's figure shows.
"""

from __future__ import annotations

import dataclasses
import math

from plunit.lab.read.fit import FitExperiment, with_tensorflow
from plunit.lab.train.fit import FitSpec

_SPEC = FitSpec("curve", (1, 5, 5, 5, 5, 2), 4096)
_PERIOD = dataclasses.replace(_SPEC, low=0.0, high=2 * math.pi)

PARAMETRIC = FitExperiment(
    "parametric", "The parametric curve of section 3, t in [-2 pi, 2 pi]", _SPEC, "3", noun="the parametric curve"
)

EXPERIMENTS = (
    PARAMETRIC,
    FitExperiment(
        "parametric-period",
        "The parametric curve of section 3, one period",
        _PERIOD,
        "3",
        noun="one period of the parametric curve",
    ),
    with_tensorflow(PARAMETRIC),
)
