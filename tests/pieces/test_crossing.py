import numpy as np
import pytest

from plunit.pieces import activation, network
from plunit.pieces.crossing import Points, Pool, cuts, joined
from plunit.pieces.layer import Layer


def strict_layer(units, f, seed):
    """Return a layer without tolerance: sides are what rounding makes them."""
    rng = np.random.default_rng(seed)
    net = network([(rng.normal(size=(units, 2)), rng.normal(size=units)), f])
    return Layer.of(net.weights[0], net.biases[0], net.activations[0])


def random_points(layer, n, seed):
    place = np.random.default_rng(seed).normal(size=(n, 2))
    return Points.at(layer, place, place, np.zeros(n, dtype=np.int64))


@pytest.mark.parametrize("f", [activation.plu(), activation.relu()])
@pytest.mark.parametrize("units", [1, 5, 70])
def test_no_line_is_crossed_between_neighbours(f, units):
    layer = strict_layer(units, f, units)
    points = random_points(layer, 40, 1)
    tail, head = np.arange(20), np.arange(20, 40)
    parts, segment = cuts(layer, points, tail, head, 10**6)
    new = joined(*parts)
    assert (np.diff(segment) >= 0).all()
    chains = [
        joined(points.take(tail[[i]]), new.take(np.flatnonzero(segment == i)), points.take(head[[i]]))
        for i in range(20)
    ]
    assert [i for i, chain in enumerate(chains) if crossed(chain)] == []
    assert [i for i, chain in enumerate(chains) if not in_order(chain)] == []
    assert sum(len(chain) - 2 for chain in chains) == len(new) > units


def crossed(chain):
    """Return whether a unit is above a knot at one point and below it at the next."""
    return (chain.above[:, 1:] & chain.below[:, :-1] | chain.below[:, 1:] & chain.above[:, :-1]).any()


def in_order(chain):
    """Return whether the points follow one another on the way from the first to the last."""
    along = (chain.place - chain.place[0]) @ (chain.place[-1] - chain.place[0])
    return (np.diff(along) > 0).all()


def test_a_new_point_is_exactly_on_its_line():
    layer = strict_layer(1, activation.relu(), 3)
    points = random_points(layer, 400, 4)
    parts, _ = cuts(layer, points, np.arange(200), np.arange(200, 400), 10**6)
    new = joined(*parts)
    assert len(new) > 10
    assert not new.above.any()
    assert not new.below.any()


@pytest.mark.parametrize("name", ["place", "rows", "member", "above", "below"])
def test_a_pool_keeps_what_it_gets(name):
    layer = strict_layer(3, activation.plu(), 5)
    parts = [random_points(layer, n, n) for n in (2, 1, 5, 0, 40)]
    pool = Pool(parts[0])
    for part in parts[1:]:
        pool.append(part)
    np.testing.assert_array_equal(getattr(pool.points, name), getattr(joined(*parts), name))
