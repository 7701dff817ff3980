import dataclasses

import pytest

from plunit import ensemble
from plunit.lab.experiment import catalogue
from plunit.lab.plan import Part
from plunit.lab.train.cifar10 import Cifar10Spec
from plunit.lab.train.density import DensitySpec
from plunit.lab.train.depth import DepthSpec
from plunit.lab.train.fit import FitSpec
from plunit.lab.train.inverse import InverseSpec
from plunit.lab.train.shape import ShapeSpec
from plunit.lab.train.threads import one_thread
from plunit.lab.train.warp import WarpSpec

QUICK = {
    FitSpec: {"steps": 32, "stride": 8, "checkpoints": (8, 16)},
    ShapeSpec: {"alphas": (0.1, 0.5), "cs": (0.5, 1, 2)},
    DepthSpec: {"depths": (2, 4)},
    InverseSpec: {"depths": (1, 4), "points": 16, "features": 3, "values": 256},
    WarpSpec: {"steps": 8, "batch": 64, "depth": 3, "lines": 5, "dots": 7, "points": 200},
    DensitySpec: {"steps": 5, "batch": 64, "blocks": 1, "points": 200, "cells": 8, "samples": 50},
    Cifar10Spec: {"steps": 4, "batch": 5, "early": (1,)},
}
"""What makes a spec a matter of a moment."""


@pytest.fixture(scope="package", autouse=True)
def single_thread():
    """Tensors this small are slower on several threads."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def small():
    """Every experiment with a few steps; yields a plan of three seeds that covers sections 2-4 and the depths."""
    with pytest.MonkeyPatch.context() as patch:
        for name, one in catalogue().items():
            changes = QUICK.get(type(one.spec), {})
            if isinstance(one.spec, ShapeSpec):
                changes = {**changes, "fit": dataclasses.replace(one.spec.fit, steps=8)}
            # all callers of catalogue() get the same dictionary
            patch.setitem(catalogue(), name, dataclasses.replace(one, spec=dataclasses.replace(one.spec, **changes)))
        covered = {name: one for name, one in catalogue().items() if type(one.spec) in (FitSpec, ShapeSpec, DepthSpec)}
        yield {
            name: Part(name, 3, one.activations, ensemble.engine() if one.engines else "")
            for name, one in covered.items()
        }
