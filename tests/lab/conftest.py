"""One quick lab: every experiment with a spec that takes a moment, and plans of it."""

import dataclasses

import pytest
from browsers import open_browser
from rich.console import Console

from plunit import ensemble
from plunit.lab import running, store
from plunit.lab.experiment import catalogue
from plunit.lab.plan import Part
from plunit.lab.train.capacity_frequency import CapacitySpec, FrequencySpec
from plunit.lab.train.cifar10 import Cifar10Spec
from plunit.lab.train.cost import CostSpec
from plunit.lab.train.depth import DepthSpec
from plunit.lab.train.inverse import InverseSpec
from plunit.lab.train.sine_parametric_surface import FitSpec, ReachSpec
from plunit.torch.threads import one_thread

QUICK = {
    FitSpec: {"steps": 32, "stride": 8, "checkpoints": (8, 16)},
    ReachSpec: {"steps": 8, "finish_steps": 6},
    CapacitySpec: {"steps": 4, "units": (2, 3, 6), "layers": (2, 4, 8)},
    FrequencySpec: {"steps": 4},
    CostSpec: {"elements": 100, "calls": 1},
    DepthSpec: {"depths": (2, 4)},
    InverseSpec: {"depths": (1, 4), "points": 16, "features": 3},
    Cifar10Spec: {"steps": 4, "batch": 5, "early": (1,)},
}
"""What makes a spec a matter of a moment."""


@pytest.fixture(scope="package", autouse=True)
def single_thread():
    """Tensors this small are slower on several threads."""
    with one_thread():
        yield


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def quick_lab():
    """Every experiment with a few steps; yields a function that makes a plan of some of them."""

    def plan_of(*names, seeds):
        engines = {name: ensemble.engine() if catalogue()[name].engines else "" for name in names}
        return {name: Part(name, seeds, catalogue()[name].activations, engines[name]) for name in names}

    with pytest.MonkeyPatch.context() as patch:
        for name, one in catalogue().items():
            spec = dataclasses.replace(one.spec, **QUICK.get(type(one.spec), {}))
            others = {"records": ()} if isinstance(spec, Cifar10Spec) else {}  # those stored have the usual spec
            # all callers of catalogue() get the same dictionary
            patch.setitem(catalogue(), name, dataclasses.replace(one, spec=spec, **others))
        yield plan_of


@pytest.fixture(scope="session")
def compute():
    """Return a function that computes a plan in this process and returns its results."""

    def computed(folder, plan):
        todo = {cell: part.experiment() for part in plan.values() for cell in part.cells()}
        with running.here() as executor:
            have = running.run(folder, todo, executor)
        return store.collect(folder, plan, have, pytest.fail)

    return computed


@pytest.fixture
def console():
    return Console(record=True, width=300, force_terminal=False)
