import numpy as np
import pytest

from plunit.pieces import activation, cells, level_set, network

BOX = ((-2.0, 2.0), (-2.0, 2.0))


def random_cells(seed):
    rng = np.random.default_rng(seed)
    layers = [
        (rng.normal(size=(8, 2)), rng.normal(size=8)),
        activation.plu(),
        (rng.normal(size=(8, 8)), rng.normal(size=8)),
    ]
    net = network([*layers, activation.plu(), (rng.normal(size=(2, 8)), rng.normal(size=2))])
    return net, cells(net, BOX)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("output", [0, 1])
def test_segments_are_on_the_level(seed, output):
    net, found = random_cells(seed)
    y = float(np.median(found.values[:, output]))
    level = level_set(found, y, output)
    s = np.linspace(0, 1, 5)[:, None, None]
    points = level.segments[:, 0] + s * (level.segments[:, 1] - level.segments[:, 0])
    np.testing.assert_allclose(net(points)[..., output], y, atol=1e-10)
    left = level.segments[:, 1] - level.segments[:, 0]
    middle = level.segments.mean(axis=1)
    beside = middle + 1e-7 * np.stack([-left[:, 1], left[:, 0]], axis=1) / np.linalg.norm(left, axis=1)[:, None]
    inside = found.locate(beside) == level.cell
    assert (net(beside)[inside, output] > y).all()
    assert inside.mean() > 0.9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ulps", [None, 0, 1, -1])
def test_segments_join_into_lines_that_end_on_the_boundary(seed, ulps):
    _, found = random_cells(seed)
    y = float(np.median(found.values[:, 0]))
    if ulps is not None:
        # the level of a vertex inside the box, to rounding
        inside = np.flatnonzero(np.abs(found.vertices).max(axis=1) < 1.9)
        vertex = inside[np.argmin(np.abs(found.values[inside, 0] - y))]
        y = float(found.values[vertex, 0] + ulps * np.spacing(found.values[vertex, 0]))
    level = level_set(found, y)
    if ulps is not None:
        gap = np.abs(level.segments - found.vertices[vertex]).max(axis=-1)
        assert np.count_nonzero(gap == 0) == np.count_nonzero(gap < 1e-9) >= 2
    ends, times = np.unique(level.segments.reshape(-1, 2), axis=0, return_counts=True)
    loose = ends[times == 1]
    assert (np.abs(np.abs(loose).max(axis=1) - 2) < 1e-12).all()
    assert set(times.tolist()) <= {1, 2}


def test_every_sign_change_on_a_line_is_a_crossing():
    net, found = random_cells(1)
    y = float(np.median(found.values[:, 0]))
    x = np.stack([np.linspace(-2, 2, 200_001), np.full(200_001, 0.3)], axis=1)
    changes = np.count_nonzero(np.diff(np.sign(net(x)[:, 0] - y)))
    segments = level_set(found, y).segments
    assert changes == np.count_nonzero((segments[:, 0, 1] - 0.3) * (segments[:, 1, 1] - 0.3) < 0)


def test_edges_and_flat_cells_on_the_level():
    ridge = network([([[1.0, 0.0]], [0.0]), activation.absolute()])
    level = level_set(cells(ridge, BOX), 0.0)
    assert np.sort(level.segments[0], axis=0).tolist() == [[0, -2], [0, 2]]
    assert (len(level.segments), len(level.flat)) == (1, 0)
    shelf = network([([[1.0, 0.0]], [0.0]), activation.relu()])
    level = level_set(cells(shelf, BOX), 0.0)
    assert (len(level.segments), len(level.flat)) == (1, 1)
    assert level_set(cells(shelf, BOX), 3.0).segments.shape == (0, 2, 2)


def test_bad_input():
    with pytest.raises(ValueError, match="finite"):
        level_set(random_cells(0)[1], np.inf)


@pytest.mark.parametrize("seed", [13, 21, 51])
def test_a_level_through_a_vertex_meets_it_to_the_bit(seed):
    _, found = random_cells(seed)
    inside = np.flatnonzero(np.abs(found.vertices).max(axis=1) < 1.9)
    levels = [(vertex, level_set(found, float(found.values[vertex, 0]))) for vertex in inside[:3]]
    gaps = [np.abs(level.segments - found.vertices[vertex]).max(axis=-1) for vertex, level in levels]
    assert [np.count_nonzero(gap == 0) for gap in gaps] == [np.count_nonzero(gap < 1e-9) for gap in gaps]
