"""Section 2: sin(x) on [-2 pi, 2 pi], fitted by networks of two hidden layers with three units each."""

from __future__ import annotations

from plunit.lab.read.fit import FitExperiment, with_tensorflow
from plunit.lab.train.fit import FitSpec

SINE = FitExperiment("sine", "The sine of section 2", FitSpec("sine", (1, 3, 3, 1), 2048), "2", noun="the sine")

EXPERIMENTS = (SINE, with_tensorflow(SINE))
