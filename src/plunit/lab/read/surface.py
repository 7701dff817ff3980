"""Section 4: the hyperbolic paraboloid x^2 - y^2, fitted on batches of 100 random points.

The paper does not state the number of steps: that of section 2.
"""

from __future__ import annotations

from plunit.lab.read.fit import FitExperiment, with_tensorflow
from plunit.lab.train.fit import FitSpec

_SPEC = FitSpec("saddle", (2, 3, 3, 1), 2048, low=-3.0, high=3.0, points=41, batch=100)

SURFACE = FitExperiment("surface", "The hyperbolic paraboloid of section 4", _SPEC, "4", noun="the surface")

EXPERIMENTS = (SURFACE, with_tensorflow(SURFACE))
