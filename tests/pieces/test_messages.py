"""The errors of `plunit.pieces` in one table: the call, the error, and parts of its message in order."""

import numpy as np
import pytest

from plunit.pieces import (
    Activation,
    Curve,
    Ensemble,
    Layer,
    Network,
    activation,
    along,
    counts,
    curve,
    curves,
    difference,
    distance,
    ensemble,
    error_bound,
    network,
    plane,
    polygon_counts,
    polygons,
    quantize,
    rescale,
    simplify,
    solve,
    to_relu,
)

ONE, TWO = (network([(np.eye(n), np.zeros(n)), activation.plu(), (np.ones((1, n)), [0.0])]) for n in (1, 2))
PAIR = ensemble([(np.ones((1, 1, 2)), np.ones((1, 2)))])
BOX = ((-3.0, 3.0), (-2.0, 4.0))
TENT, TWICE = Curve([0, 1, 2], [[0], [1], [0]], [[1], [-1]]), Curve([0, 1], [[0, 0], [1, 1]], [[1, 1]])
W, B, F = np.ones((2, 3)), np.ones(2), activation.relu().broadcast(2)
FIRST, LAST = Layer(W, B, F), Layer(W[:, :2], B)
START, SLOPE = ([[1.0]], [0.0]), ([0, 1], [[0], [1]])
ENDS = [(1.0, 1.0), (2.0, 1.0), (-np.inf, 1.0), (0.0, np.nan), (0.0, np.inf)]

VALUES = {
    "layers": [
        (lambda: network([([[np.nan]], [0.0])]), "layer 0", "finite"),
        (
            lambda: network([START, ([[1.0, 2.0]], [0.0])]),
            "layer 1 expects 2 inputs, but the previous layer has 1 output",
        ),
        (lambda: network([([[1.0]], [0.0, 0.0])]), "layer 0: weight must be"),
        (lambda: network([([1.0], [0.0])]), "layer 0: weight must be"),
        (lambda: network([activation.relu()]), "at least one affine layer"),
        (lambda: network([START, activation.plu(np.array([0.1, 0.2]))]), "does not fit"),
        (lambda: ensemble([(np.ones((1, 1, m)), np.ones((1, m))) for m in (2, 3)]), "members, got [2, 3]"),
        (lambda: Layer(W[0], B), "[out, in] and bias [out]"),
        (lambda: Layer(W, B[:1]), "got (2, 3) and (1,)"),
        (lambda: Layer(W, W), "got (2, 3) and (2, 3)"),
        (lambda: Layer(W, B, activation.relu()), "needs leading shape (2,)"),
        (lambda: Layer(W, B, activation.relu().broadcast(3)), "use .broadcast(units)"),
        (lambda: Network(()), "one or more layers"),
        (lambda: Network((FIRST,)), "an activation except the last"),
        (lambda: Network((LAST, LAST)), "an activation except the last"),
        (lambda: Network((FIRST, Layer(W, B))), "layer 1 needs weights for (2,) outputs"),
        (lambda: Network(PAIR.layers), "need 2 axes"),
        (lambda: Ensemble((FIRST, LAST)), "need 3 axes"),
        (lambda: Ensemble((FIRST.part(None), Layer(np.ones((3, 2, 2)), np.ones((3, 2))))), "(1, 2) outputs"),
        (lambda: TWO([1.0, 2.0, 3.0]), "[..., 2]"),
    ],
    "activations": [
        (lambda: activation.plu(-0.1), "alpha must be finite and >= 0"),
        (lambda: activation.plu(0.1, np.nan), "c must be finite"),
        (lambda: activation.hardtanh(2.0, 1.0), "in order"),
        (lambda: activation.leaky_relu(np.nan), "finite"),
        (lambda: Activation(np.zeros(2), np.zeros(2), np.zeros(())), "k + 1 slopes"),
        (lambda: Activation(np.zeros((3, 1)), np.zeros((3, 2)), np.zeros(())), "at_zero"),
        (lambda: activation.piecewise([-np.inf], [0.0, 1.0]), "knots numbers or"),
    ],
    "curves": [
        *((lambda ends=ends: curve(ONE, *ends), "finite low < high") for ends in ENDS),
        (lambda: curve(ONE, "low", 1.0), "an interval needs two numbers, low and high, got"),
        (lambda: curve(TWO, -1.0, 1.0), "2 inputs", "along"),
        (lambda: curve(ONE, -3.0, 3.0).derivative(np.nan), "got NaN; leave it out"),
        *((lambda n=n: curve(ONE, -3, 3, limit=n), "limit must be an integer") for n in (0, None, 2.5, "many")),
        (lambda: curve(ONE, -3.0, 3.0, limit=2), "layer 1 of 1 makes at least 3 pieces", "limit=2", "raise limit"),
        (lambda: curve(ONE, -3.0, 3.0)(4.0), "x = 4.0 is outside [-3.0, 3.0]"),
        (lambda: along(ONE, [0.0]), "two or more points"),
        (lambda: along(ONE, [0.0], [0.0, 1.0]), "1 coordinates"),
        (lambda: along(ONE, [0.0], [np.nan]), "finite"),
        (lambda: Curve(*SLOPE, [[1], [1]]), "slopes"),
        (lambda: Curve([0, 0], [[0], [1]], [[1]]), "increasing"),
        (lambda: Curve([0], [[0]], np.zeros((0, 1))), "a curve needs knots"),
        (lambda: Curve([[0], [1]], [[0], [1]], [[1]]), "a curve needs knots"),
        (lambda: Curve([0, 1], [0, 1], [1]), "a curve needs knots"),
        (lambda: Curve([0, 1], [[0], [np.inf]], [[1]]), "values must be finite, got inf"),
        (lambda: Curve(*SLOPE, [[np.nan]]), "slopes must be finite, got nan"),
        (lambda: Curve(*SLOPE, [[2]]), "values and slopes must agree: between x = 0.0 and 1.0 output 0"),
        (lambda: Curve(*SLOPE, [[1]], patterns=-1), "patterns must be an integer"),
        (lambda: Curve(*SLOPE, [[1]], tolerance=[[-1]]), "tolerance must be >= 0"),
        (lambda: Curve(*SLOPE, [[1]], tolerance=[1, 2, 3]), "tolerance must have the shape of the slopes, (1, 1)"),
        (lambda: solve(TENT, np.nan), "finite"),
        (lambda: distance(TENT, Curve(*SLOPE, [[1]])), "same domain"),
        (lambda: simplify(TWICE, pieces=1), "one output, got 2; pick one with .output(i)"),
    ],
    "simpler curves": [
        (lambda: simplify(TENT), "give pieces or tolerance, got pieces=None and tolerance=None"),
        (lambda: simplify(TENT, pieces=2, tolerance=0.1), "give pieces or tolerance"),
        (lambda: simplify(TENT, pieces=0), "pieces must be an integer of at least 1, got 0"),
        (lambda: simplify(TENT, pieces=1.5), "at least 1, got 1.5"),
        *((lambda e=e: simplify(TENT, tolerance=e), f"a number >= 0, got {e}") for e in (-1, np.nan, np.inf)),
    ],
    "polygons": [
        (lambda: polygons(TWO, ((0.0, 0.0), (0.0, 1.0))), "low < high", " for input 0"),
        (lambda: polygons(TWO, ((0.0, 1.0), (0.0, np.inf))), "finite", " for input 1"),
        (lambda: polygons(TWO, ((0.0, 1.0), (np.nan, 1.0))), "finite", " for input 1"),
        (lambda: polygons(TWO, (-3, 3)), "a box of 2 inputs is 2 pairs (low, high), got (-3, 3)"),
        (lambda: polygons(TWO, ((0, 1), (0, 1), (0, 1))), "2 pairs (low, high), got 3"),
        (lambda: polygons(TWO, ((0, 1, 2), (0, 1))), "a box needs two numbers, low and high, got", " for input 0"),
        (lambda: polygons(TWO, BOX, limit=5), "limit=5", "raise limit"),
        (lambda: polygon_counts(TWO, BOX, limit=5), "limit=5"),
        (lambda: polygon_counts(TWO, BOX, limit=0), "limit must be an integer"),
        (lambda: polygons(ONE, BOX), "1 input,", "plane"),
        (lambda: plane(TWO, [0.0], [1.0], [1.0]), "2 finite coordinates"),
        (lambda: plane(TWO, [0.0, np.inf], [1.0, 0.0], [0.0, 1.0]), "finite"),
        (lambda: polygons(TWO, BOX).locate([1.0, 2.0, 3.0]), "[..., 2]"),
    ],
    "networks of networks": [
        (lambda: difference(ONE, TWO), "1 -> 1 and 2 -> 1"),
        (lambda: rescale(TWO, scale=0.0), "scale must not be 0"),
        (lambda: rescale(TWO, output_scale=[0.0]), "scale must not be 0"),
        (lambda: rescale(TWO, shift=[1.0, 2.0, 3.0]), "shift must be a finite number or 2 of them"),
        (lambda: rescale(TWO, scale=np.inf), "scale must be a finite number"),
        (lambda: rescale(TWO, scale=1e-320), "exceed 1e308"),
    ],
    "fixed point": [
        *((lambda bits=bits: quantize(ONE, [(0, 1)], bits), "bits must be 8 or 16") for bits in (4, 8.0, "16", None)),
        (lambda: quantize(ONE, [(0, 1), (0, 1)]), "is 1 pair (low, high)"),
        (lambda: quantize(ONE, [(-1e307, 1e307)]), "must be between 1e-290 and 1e290 long"),
        (lambda: quantize(ONE, [(0, 1)], scale=0), "scale must not be 0"),
    ],
}

TYPES = [
    (lambda: network([START, "tanh"]), "layer 1", "str"),
    (lambda: network([np.eye(2)]), "layer 0"),
    (lambda: curve(PAIR, 0, 1), "one network, got an ensemble of 2; pick one with .member(i)"),
    (lambda: polygons(PAIR, BOX), "one network, got an ensemble of 2"),
    (lambda: difference(PAIR, ONE), "one network, got an ensemble of 2"),
    (lambda: to_relu(PAIR), "pick one with .member(i)"),
    (lambda: quantize(PAIR, [(0, 1)]), "an ensemble of 2"),
    *((lambda call=call: call("net", 0, 1), "got str; plunit.torch.to_network") for call in (curve, curves, counts)),
    *((lambda call=call: call("net", BOX), "got str; plunit.torch.to_network") for call in (polygons, polygon_counts)),
    (lambda: along(np.eye(1), [0.0], [1.0]), "needs a plunit.pieces.Network, got ndarray"),
    (lambda: error_bound(ONE), "needs a FixedNetwork, got Network; quantize(net, box) makes one"),
]
ROWS = [(ValueError, *row) for rows in VALUES.values() for row in rows] + [(TypeError, *row) for row in TYPES]


@pytest.mark.parametrize(("error", "call", "parts"), [(error, call, parts) for error, call, *parts in ROWS])
def test_messages(error, call, parts):
    with pytest.raises(error) as caught:
        call()
    at = 0
    for part in parts:
        at = str(caught.value).index(part, at)
