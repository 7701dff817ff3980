"""What is said of questions that cannot be asked: one table."""

import numpy as np
import pytest
from random_networks import dense_network

from plunit.pieces import (
    FloatNetwork,
    activation,
    curve,
    distance,
    is_monotone,
    lipschitz,
    maximum,
    network,
    polygons,
)
from plunit.pieces.proofs.properties import Property
from plunit.pieces.proofs.verdicts import holds

NET, BOX = dense_network(0, 3, 4, 2), [(-1, 1)] * 3
LINE = curve(dense_network(0, 1, 4, 1), -1, 1)
UNUSED = network([([[1.0, 0.0]], [0.0]), activation.relu(), ([[1.0]], [0.0])])
LARGE = network([([[1e200]], [0.0]), activation.relu(), ([[1e200]], [0.0])])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: maximum(NET, (-3, 3)), ValueError, r"a box of 3 inputs is 3 pairs \(low, high\)"),
        (lambda: maximum(NET, [(-3, 3)]), ValueError, r"a box of 3 inputs is 3 pairs .*got 1"),
        (lambda: maximum(NET, [(-3, 3), (3, -3), (0, 1)]), ValueError, "low <= high.*input 1"),
        (lambda: maximum(NET, [(-3, 3), (0, np.nan), (0, 1)]), ValueError, "low <= high.*input 1"),
        (lambda: maximum(NET, BOX, output=2), ValueError, "output must be one of the outputs 0 to 1, got 2"),
        (lambda: maximum(NET, BOX, output=True), ValueError, "0 to 1, got True"),
        (lambda: maximum(NET, BOX, output="0"), ValueError, "0 to 1, got '0'"),
        (lambda: maximum(NET, BOX, time_limit=True), ValueError, "positive number of seconds.*got True"),
        (lambda: maximum(NET, BOX, time_limit=0), ValueError, "positive number of seconds"),
        (lambda: maximum(NET, BOX, time_limit=np.nan), ValueError, "positive number of seconds"),
        (lambda: maximum(NET, BOX, constraints=[1]), ValueError, r"a pair \(A, b\)"),
        (lambda: maximum(NET, BOX, constraints=([[1, 2]], [1])), ValueError, r"A \[m, 3\]"),
        (lambda: maximum(NET, BOX, constraints=([[1, 2, np.inf]], [1])), ValueError, "finite.*leave out rows"),
        (lambda: maximum(NET, BOX, constraints=([[1.0, 0, 0]], [-5.0])), ValueError, "no x in the box meets"),
        (lambda: maximum(NET, BOX, constraints=([[1e308, 0, 0]], [0])), ValueError, "row 0: .*multiply the row"),
        (lambda: maximum(NET, BOX, constraints=([[1e-200, 0, 0]], [0])), ValueError, "between 1e-150 and 1e\\+150"),
        (lambda: maximum(NET, BOX, constraints=([[10**400, 0, 0]], [0])), ValueError, "must be an array of numbers"),
        (
            lambda: maximum(NET, BOX, constraints=(np.array([[1j, 0, 0]]), [0])),
            ValueError,
            "must be an array of numbers",
        ),
        (lambda: Property([1, 2]), TypeError, r"a sequence of Case, got \[1, 2\]"),
        (lambda: Property.always([(0, 1)], [[1.0]], [1.0]).contains([0.5], [np.inf]), ValueError, "must be finite"),
        (lambda: maximum("net", BOX), TypeError, "needs a plunit.pieces.Network"),
        (lambda: maximum(LARGE, [(0, 1)]), ValueError, "scale the weights"),
        (lambda: holds(LARGE, Property.always([(0, 1)], [[1.0]], [1.0])), ValueError, "scale the weights"),
        (lambda: holds(NET, Property.always([(0, 1)], [[1.0]], [1.0])), ValueError, "1 input and 1 output,.*3 and 2"),
        (lambda: maximum(UNUSED, [(0, 1), (-1e308, 1e308)]), ValueError, "inputs reach 1.0e\\+308 .*below 1e\\+300"),
        (
            lambda: holds(UNUSED, Property.always([(0, 1), (-1e308, 1e308)], [[1.0]], [1.0])),
            ValueError,
            "use a smaller domain",
        ),
        (lambda: lipschitz(UNUSED, [(0, 1), (-1e308, 1e308)]), ValueError, "use a smaller domain"),
        (lambda: polygons(UNUSED, [(0, 1), (-1e308, 1e308)]), ValueError, "use a smaller domain"),
        (lambda: distance(LINE, LINE, [(-1, 1)]), TypeError, "their own domain"),
        (lambda: distance(NET, NET), TypeError, "without a box"),
        (lambda: distance(NET, dense_network(0, 3, 4, 1), BOX), ValueError, "3 -> 2 and 3 -> 1"),
        (lambda: lipschitz(NET, BOX, norm=3), ValueError, "norm must be 1, 2 or inf, got 3"),
        (lambda: lipschitz(FloatNetwork(NET), BOX), TypeError, "a FloatNetwork is a program.*; ask about its .net"),
        (lambda: lipschitz(NET, BOX, norm=True), ValueError, "norm must be 1, 2 or inf, got True"),
        (lambda: lipschitz(NET, [(0, 0)] * 3), ValueError, "all inputs are fixed.*widen the domain"),
        (
            lambda: lipschitz(NET, BOX, constraints=([[1.0, 0, 0], [-1.0, 0, 0]], [0.0, 0.0])),
            ValueError,
            "a flat domain, where a gradient has no meaning",
        ),
        (lambda: is_monotone(NET, 3, BOX), ValueError, "feature must be one of the inputs 0 to 2, got 3"),
        (lambda: is_monotone(NET, 0, BOX, output=2), ValueError, "0 to 1, got 2"),
    ],
)
def test_bad_input_is_one_clear_line(call, error, text):
    with pytest.raises(error, match=text):
        call()
