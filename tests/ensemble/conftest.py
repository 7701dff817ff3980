import numpy as np
import pytest

from plunit.ensemble import ENGINES
from plunit.ensemble.training_data import points
from plunit.ensemble.training_state import Steps, initial_state
from plunit.torch.threads import one_thread


@pytest.fixture(scope="package", autouse=True)
def single_thread():
    """The networks trained alone have tensors that are slower on several threads."""
    with one_thread():
        yield


@pytest.fixture
def first_step(engine):
    """A function: each member's loss [S] and its gradient [parameters, S] before the first step, by the engine."""

    def measured(network, theta, data, *, loss="square"):
        state = initial_state(network, theta, loss=loss, lr=0.0, stride=1, steps=1)
        ENGINES[engine]([(state, Steps(0, np.ones(1), points(data, 1, network, theta)))])
        return state.history[0], state.mean / np.float32(0.1)

    return measured
