"""Sizes of inputs and values: only those that might be too large for floating point are refused."""

import numpy as np
import pytest

from plunit.pieces import activation, network
from plunit.pieces.boxes import check_size, sizes


def line(weight, f=None):
    return network([([[weight]], [0.5]), f or activation.plu(2.0), ([[1.0]], [0.0])])


@pytest.mark.parametrize(
    ("net", "size"),
    [
        (line(1.0), 1e300),
        (line(1e-10), 1e300),  # inputs count, not only values
        (line(1e200), 1e100),
        (line(1e300), 1e-9),  # slopes count as well: those of |x| <= 1
        (line(1e150, activation.piecewise([0.0], [0.0, 1e151])), 1.0),
    ],
)
def test_what_might_be_too_large_is_refused(net, size):
    with pytest.raises(ValueError, match="on this domain"):
        check_size(net, np.array([size]))
    check_size(line(1.0), np.array([1e299]))


def test_values_stay_below_their_sizes():
    rng = np.random.default_rng(0)
    hidden = (rng.normal(size=(5, 3)), rng.normal(size=5)), activation.plu(rng.uniform(0, 2, 5), 1.0)
    net = network([*hidden, (rng.normal(size=(2, 5)), rng.normal(size=2))])
    *_, last = sizes(net, np.array([1.0, 2.0, 3.0]))
    x = rng.uniform(-1, 1, (1000, 3)) * [1.0, 2.0, 3.0]
    assert (np.abs(net(x)) <= last).all()
    assert (last <= 20 * np.abs(net(x)).max(axis=0)).all()
