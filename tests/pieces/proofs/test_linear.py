"""Bounds of linear programs against scipy's, and against exact corners in the plane; and with a solver that lies."""

from fractions import Fraction

import numpy as np
import pytest
import rational_networks

from plunit.pieces.proofs import linear
from plunit.pieces.proofs.linear import NEVER, Region, over


def program(seed, inputs=None, cuts=None):
    """A random region that holds its own middle point, and a goal."""
    rng = np.random.default_rng(seed)
    inputs, cuts = inputs or int(rng.integers(1, 7)), cuts or int(rng.integers(1, 9))
    box = np.sort(rng.uniform(-3, 3, (inputs, 2)), axis=1)
    rows = rng.normal(size=(cuts, inputs)) if seed % 2 else rng.integers(-2, 3, (cuts, inputs)).astype(float)
    limits = rows @ box.mean(axis=1) + rng.choice([0.0, 0.5, 1.0], cuts) * rng.random(cuts)
    if seed % 3 == 0:
        rows, limits = np.concatenate([rows, rows[:1], 0 * rows[:1]]), np.concatenate([limits, limits[:1], [0.0]])
    if seed % 5 == 0:
        box[0] = box[0].mean()
        limits = limits + np.abs(rows).sum(axis=1)
    return box, rows, limits, rng.normal(size=inputs)


def region(box, rows, limits):
    found = Region(np.array(box, dtype=float))
    for row, limit in zip(np.asarray(rows, dtype=float), limits, strict=True):
        found.add_cut(row, float(limit))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_bounds_are_the_optima_of_scipy(seed):
    linprog = pytest.importorskip("scipy.optimize").linprog
    box, rows, limits, c = program(seed)
    bound, x, dual = region(box, rows, limits).maximise(c, 0.25)
    best = -linprog(-c, rows, limits, bounds=box).fun + 0.25
    assert bound == pytest.approx(best, rel=1e-8, abs=1e-8)
    assert bound >= best - 1e-12
    assert (dual >= 0).all()
    assert c @ x + 0.25 == pytest.approx(best, rel=1e-7, abs=1e-7)
    assert (rows @ x <= limits + 1e-7).all()


@pytest.mark.parametrize("seed", range(30))
def test_no_corner_of_a_polygon_is_above_the_bound(seed):
    box, rows, limits, c = program(seed, inputs=2)
    corners = rational_networks.clipped(box.tolist(), (rows, limits))
    bound, _, _ = region(box, rows, limits).maximise(c, 0.1)
    affine = (*map(Fraction, c.tolist()), Fraction(0.1))
    if corners:
        assert max(rational_networks.value(affine, corner) for corner in corners) <= Fraction(bound)


@pytest.mark.parametrize("seed", range(20))
def test_no_point_is_proved_by_a_ray(seed):
    rng = np.random.default_rng(seed)
    box, a = np.array([[-1.0, 1.0]] * 4), rng.normal(size=4)
    rows, limits = [a, -a, rng.normal(size=4)], [0.1, -0.3, 1.0]  # a x <= 0.1 and a x >= 0.3
    assert region(box, rows, limits).maximise(rng.normal(size=4), 0.0)[0] == NEVER
    limits[1] = -0.1
    assert region(box, rows, limits).maximise(rng.normal(size=4), 0.0)[0] > NEVER


def test_a_cut_narrows_the_box_and_empties_it():
    found = region([[0, 2], [0, 2]], [[1.0, 1.0]], [0.5])
    assert found.high == pytest.approx([0.5, 0.5])
    assert (found.high >= 0.5).all()
    assert (found.low == 0).all()
    found.add_cut(np.array([-1.0, -1.0]), -0.75)
    assert found.maximise(np.ones(2), 0.0)[0] == NEVER
    assert not found.empty
    found.add_cut(np.array([-1.0, -1.0]), -1.25)
    assert found.empty
    assert found.maximise(np.ones(2), 0.0)[0] == NEVER


def test_tiny_rows_count_as_others_do():
    """The x of a program keeps to cuts of 1e-20, too."""
    found = region([[-1, 1]] * 3, 1e-20 * np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]), [0.3e-20, -0.3e-20])
    _, x, _ = found.maximise(np.array([1.0, -1.0, 1.0]), 0.0)
    assert x @ [1.0, 2.0, 3.0] == pytest.approx(0.3)


@pytest.mark.parametrize(("constant", "floor"), [(1e16, -1.0), (0.1, 0.3), (5e-324, -1.0), (-0.1, 1e-300)])
def test_a_difference_is_rounded_up(constant, floor):
    assert Fraction(over(constant, floor)) >= Fraction(constant) - Fraction(floor)


LIES = {
    "random": lambda rng, dual, ray: (rng.exponential(size=len(dual)), rng.exponential(size=len(dual))),
    "huge": lambda rng, dual, ray: (1e200 * rng.random(len(dual)), 1e308 * rng.random(len(dual))),
    "perturbed": lambda rng, dual, ray: (dual * rng.uniform(0.5, 1.5, len(dual)), None),
    "a ray": lambda rng, dual, ray: (dual, dual),
    "nan": lambda rng, dual, ray: (np.full(len(dual), np.nan), np.full(len(dual), np.nan)),
}


@pytest.fixture(params=LIES)
def liar(request, monkeypatch):
    """Replace what the simplex method proposes."""
    honest, rng = linear._Simplex.solve, np.random.default_rng(0)

    def lie(self):
        dual, ray, x = honest(self)
        return (*LIES[request.param](rng, dual, ray), x)

    monkeypatch.setattr(linear._Simplex, "solve", lie)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
@pytest.mark.parametrize("seed", range(10))
def test_a_solver_that_lies_makes_no_bound_wrong(seed, liar):
    box, rows, limits, c = program(seed, inputs=2)
    corners = rational_networks.clipped(box.tolist(), (rows, limits))
    affine = (*map(Fraction, c.tolist()), Fraction(0))
    best = max((rational_networks.value(affine, corner) for corner in corners), default=None)
    bound = region(box, rows, limits).maximise(c, 0.0)[0]
    assert best is None or (bound > NEVER and best <= Fraction(bound))
