import numpy as np
import pytest

from plunit.pieces import network
from plunit.torch.features import ROOM, Place
from plunit.torch.windows import maxima


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("absent", [0.0, 0.4])
def test_the_largest_of_each_window(taps, absent):
    rng = np.random.default_rng(taps)
    windows = rng.integers(0, 6, (7, taps))
    windows[:, :-1][rng.random((7, taps - 1)) < absent] = -1
    net = network(maxima(windows, 6, Place(None, ROOM)))
    assert len(net.activations) == np.ceil(np.log2((windows >= 0).sum(axis=1).max())) or absent
    x = rng.normal(size=(50, 6))
    expected = np.where(windows < 0, -np.inf, x[:, windows]).max(axis=2)
    np.testing.assert_allclose(net(x), expected, rtol=0, atol=1e-14)


def test_pairs_of_several_windows_are_compared_once():
    net = network(maxima(np.array([[0, 1], [0, 1], [1, 2]]), 3, Place(None, ROOM)))
    # x0 and x1 are passed on, x1 - x0 and x2 - x1 go through relu
    assert net.biases[0].shape == (1, 4)
    assert np.isinf(net.activations[0].knots).sum() == 2
