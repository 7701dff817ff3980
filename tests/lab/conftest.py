import dataclasses

import pytest

from plunit import ensemble
from plunit.ensemble import one_thread
from plunit.lab import depth, fit, shape
from plunit.lab.plan import Part


@pytest.fixture(scope="package", autouse=True)
def single_thread():
    """Tensors this small are slower on several threads."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def small():
    """Every experiment with a few steps; yields a plan of three seeds that covers them all."""
    with pytest.MonkeyPatch.context() as patch:
        for name, spec in fit.SPECS.items():
            patch.setitem(fit.SPECS, name, dataclasses.replace(spec, steps=32, stride=8, checkpoints=(8, 16)))
        for name, spec in shape.SPECS.items():
            quick = dataclasses.replace(spec.fit, steps=8)
            patch.setitem(shape.SPECS, name, dataclasses.replace(spec, fit=quick, alphas=(0.1, 0.5), cs=(0.5, 1, 2)))
        for name, spec in depth.SPECS.items():
            patch.setitem(depth.SPECS, name, dataclasses.replace(spec, depths=(2, 4)))
        packages = (fit, shape, depth)
        engine = ensemble.engine()
        yield {name: Part(3, package.ACTIVATIONS, engine) for package in packages for name in package.SPECS}
