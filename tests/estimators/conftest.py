import numpy as np
import pytest

from plunit.ensemble import why_not_native


@pytest.fixture(scope="package", autouse=True)
def compiler():
    """Without the compiled program the estimators work, slowly and with a warning."""
    if reason := why_not_native():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def small():
    """The parameters of an estimator that is fitted in a tenth of a second."""
    return {"hidden_layer_sizes": (8,), "n_init": 16, "n_best": 4, "learning_rate_init": 0.02, "random_state": 0}


@pytest.fixture(scope="session")
def table():
    """200 rows of two inputs and a smooth target."""
    x = np.random.default_rng(0).uniform(-2, 2, (200, 2))
    return x, x[:, 0] * x[:, 1] + 0.3 * x[:, 0]
