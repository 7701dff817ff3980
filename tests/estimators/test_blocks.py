"""Rows are evaluated in blocks: the same bits however large the blocks, and little memory."""

import tracemalloc

import numpy as np
import pytest

from plunit.ensemble import forward, outputs
from plunit.ensemble.outputs import row_blocks
from plunit.sklearn import PLUClassifier, PLUDensity, PLURegressor, network_estimator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
MANY = RNG.normal(size=(30_000, 5))
FEW = {"n_init": 8, "max_iter": 20, "random_state": 0}
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
COUNTS = np.column_stack([X, np.arange(200) % 7])


@pytest.fixture(scope="module")
def regressor():
    return PLURegressor(**FEW).fit(X, X[:, :2] ** 2)


@pytest.fixture(scope="module")
def evaluated(regressor):
    """Functions of the number of rows."""
    classes = PLUClassifier(**FEW).fit(X, CLASSES)
    labels = PLUClassifier(**FEW).fit(X, X[:, :3] > 0)
    density, counts = (PLUDensity(2, **FEW).fit(x) for x in (X, COUNTS))
    mixed = np.column_stack([MANY, np.arange(len(MANY)) % 9])
    return {
        "predict": lambda n: regressor.predict(MANY[:n]),
        "deviation": lambda n: regressor.predict(MANY[:n], return_std=True)[1],
        "classes": lambda n: classes.predict(MANY[:n]),
        "chances": lambda n: classes.predict_proba(MANY[:n]),
        "decision": lambda n: classes.decision_function(MANY[:n]),
        "labels": lambda n: labels.predict(MANY[:n]),
        "density": lambda n: density.score_samples(MANY[:n]),
        "integers": lambda n: counts.score_samples(mixed[: min(n, 300)]),
    }


NAMES = ["predict", "deviation", "classes", "chances", "decision", "labels", "density", "integers"]


@pytest.fixture
def without_program(monkeypatch):
    monkeypatch.setattr(outputs, "_program", lambda: None)


@pytest.mark.parametrize("rows", [2, 513, 3000])
@pytest.mark.parametrize("name", NAMES)
def test_the_bits_do_not_depend_on_the_blocks_nor_on_other_rows(evaluated, name, rows, monkeypatch):
    expected = evaluated[name](rows)
    for numbers in (2**8, 2**40):
        monkeypatch.setattr(outputs, "NUMBERS", numbers)
        np.testing.assert_array_equal(evaluated[name](rows), expected)
    if name not in ("density", "integers"):
        np.testing.assert_array_equal(evaluated[name](1), expected[:1])


@pytest.mark.parametrize("rows", [2, 255, 256, 257, 3000])
def test_numpy_has_the_bits_of_all_rows_at_once(regressor, rows, without_program):
    members = forward(regressor._form(), regressor.theta_, MANY[:rows].T, *regressor.alpha_and_c_)
    values = np.moveaxis(members, -1, 0)
    mean, deviation = regressor.predict(MANY[:rows], return_std=True)
    np.testing.assert_array_equal(mean, values.mean(0).T)
    np.testing.assert_array_equal(deviation, values.std(0).T)
    np.testing.assert_array_equal(regressor.predict(MANY[:rows]), mean)


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 1000, 12_345])
@pytest.mark.parametrize("numbers", [1, 100, 2**20])
def test_blocks_hold_all_rows_in_order_and_none_is_small(rows, numbers):
    blocks = row_blocks(rows, numbers)
    np.testing.assert_array_equal(np.concatenate([np.arange(rows)[block] for block in blocks]), np.arange(rows))
    sizes = [block.stop - block.start for block in blocks]
    assert min(sizes) >= min(rows, 16)
    assert max(sizes) <= max(31, 2 * outputs.NUMBERS // numbers)


def _beyond_output(work):
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1] - result.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["predict", "chances", "classes"])
@pytest.mark.parametrize("compiled", [True, False])
def test_many_rows_take_little_memory(evaluated, name, compiled, request):
    if not compiled:
        request.getfixturevalue("without_program")
    assert _beyond_output(lambda: evaluated[name](len(MANY))) < 20e6


def test_many_columns_of_a_density_take_little_memory():
    wide = RNG.normal(size=(10_000, 60))
    model = PLUDensity(0, n_best=1, random_state=0).fit(wide[:500])
    assert _beyond_output(lambda: model.score_samples(wide)) < 20e6


HUGE = np.array([[0.0] * 5, [1.7e308, -1.7e308, 1.7e308, -1.7e308, 1.7e308]])


@pytest.mark.parametrize("compiled", [True, False])
def test_rows_where_the_networks_overflow_are_named(regressor, compiled, request):
    if not compiled:
        request.getfixturevalue("without_program")
    with pytest.raises(ValueError, match=r"row 1 of X .*1\.7e\+308"):
        regressor.predict(HUGE)


def test_large_rows_have_finite_values(regressor):
    model = PLUClassifier(**FEW).fit(X, CLASSES)
    chances = model.predict_proba(HUGE / 1e10)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert set(chances[1]) == {0.0, 1.0}
    assert model.predict(HUGE / 1e10)[1] == model.classes_[chances[1].argmax()]
    mean, deviation = regressor.predict(HUGE / 1e10, return_std=True)
    # along a ray the members are straight far out, so both grow with it
    near, near_deviation = regressor.predict(HUGE / 1e200, return_std=True)
    np.testing.assert_allclose(mean[1] / 1e190, near[1], rtol=1e-9)
    np.testing.assert_allclose(deviation[1] / 1e190, near_deviation[1], rtol=1e-9)


LINE = np.arange(30.0)
OVERFLOW = np.resize([1.7e308, 1.7e308, -1.7e308], 30)
FAR = np.where(LINE == 7, 1e60, LINE)  # its square overflows in single precision


@pytest.mark.parametrize(
    ("rows", "val", "text"),
    [
        ((OVERFLOW, LINE), (LINE, LINE), r"X has the value -?1\.7e\+308"),
        ((LINE, LINE), (FAR, LINE), r"X has the value 1e\+60"),
        ((LINE, LINE), (LINE, FAR), r"y has the value 1e\+60"),
    ],
)
def test_numbers_that_overflow_are_refused_before_training(rows, val, text, monkeypatch):
    monkeypatch.setattr(network_estimator, "search_networks", pytest.fail)
    with pytest.raises(ValueError, match=f"^{text}"):
        PLURegressor(**FEW).fit(rows[0][:, None], rows[1], X_val=val[0][:, None], y_val=val[1])
