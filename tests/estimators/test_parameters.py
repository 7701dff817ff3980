"""A wrong parameter is one line with its value and the rule."""

import math

import numpy as np
import pytest

from plunit.sklearn import PLUClassifier, PLURegressor

X = np.linspace(-1, 1, 40)[:, None]
Y = np.abs(X[:, 0])
COUNT = "must be an integer of at least 1, got"
WRONG = [
    *(("hidden_layer_sizes", value, f"each of hidden_layer_sizes {COUNT} ") for value in (0, True, None, 8.0, {})),
    ("hidden_layer_sizes", (8, -1), f"{COUNT} -1"),
    ("hidden_layer_sizes", (8, "a"), f"{COUNT} 'a'"),
    ("hidden_layer_sizes", ((8,), (8, 8)), f"{COUNT} "),
    ("hidden_layer_sizes", "big", "hidden_layer_sizes must be \"auto\" or positive integers, got 'big'"),
    ("hidden_layer_sizes", (10**6,), r"\(1000000,\) have 3000001 parameters; n_init = 128 .* at most 134217728; take"),
    ("max_iter", 10**12, "the 1000000000000 steps must be at most"),
    *(("activation", value, "activation must be one of tanh, relu, plu,.*got") for value in ("swish", None, ["plu"])),
    *(
        (name, value, f"{name} {COUNT} ")
        for name in ("n_init", "n_best", "max_iter", "n_iter_no_change", "batch_size")
        for value in (0, -3, 1.5, "3", True, math.nan)
    ),
    ("batch_size", None, f"batch_size {COUNT} None"),
    *(
        (name, value, rf"{name} must be a number in \(0, ")
        for name in ("learning_rate_init", "c", "validation_fraction")
        for value in (0, -1.0, math.nan, math.inf, "0.1", None, True)
    ),
    *(
        (name, value, rf"{name} must be a number in \[0, inf\), got ")
        for name in ("alpha", "weight_decay", "tol")
        for value in (-1e-9, math.nan, math.inf, "0.1", None, True)
    ),
    *((name, "no", f"{name} must be True or False, got 'no'") for name in ("early_stopping", "warm_start", "verbose")),
    ("random_state", "a", "'a' cannot be used to seed"),
]


@pytest.mark.parametrize(("name", "value", "text"), WRONG)
def test_a_wrong_parameter(name, value, text):
    with pytest.raises(ValueError, match=text) as caught:
        PLURegressor(**{name: value}).fit(X, Y)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("alpha", 1.0), ("c", 1e-9)])
def test_a_start_that_cannot_be_learned(name, value):
    with pytest.raises(ValueError, match=f"a learnable {name} must .*got {value}"):
        PLURegressor(activation="plu_learned", **{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ("all", "'all'"),
        ({False: -1, True: 1}, "finite numbers of 0 or more, got {False: -1, True: 1}"),
        ({False: math.nan, True: 1}, "finite numbers of 0 or more"),
        ({7: 1.0}, "not in class_weight"),
    ],
)
def test_a_wrong_class_weight(weight, text):
    with pytest.raises(ValueError, match=text):
        PLUClassifier(class_weight=weight).fit(X, Y > 0.5)


@pytest.mark.parametrize("sizes", [8, [8], (8,), np.array([8]), np.int64(8)])
def test_sizes_may_be_written_in_many_ways(small, sizes):
    model = PLURegressor(**{**small, "hidden_layer_sizes": sizes, "max_iter": 20}).fit(X, Y)
    assert model.widths_ == (1, 8, 1)


@pytest.mark.parametrize(("turn", "decay"), [(0, 0.0), (1, 0.1), (2, 0.3), (3, 1.0)])
def test_auto_gives_the_starts_decays_in_turn(small, turn, decay):
    """Every fourth start has the loss that it has where all starts have its decay."""
    options = {**small, "n_best": 16, "max_iter": 20}
    found, alone = (PLURegressor(**options, **rest).fit(X, Y).candidates_ for rest in ({}, {"weight_decay": decay}))
    mine, same = (table["validation_loss"][np.argsort(table["start"])][turn::4] for table in (found, alone))
    assert mine.tolist() == same.tolist()
    assert found["weight_decay"][np.argsort(found["start"])][turn::4].tolist() == [decay] * 4


def test_auto_searches_shapes(small):
    model = PLURegressor(**{**small, "hidden_layer_sizes": "auto", "max_iter": 20}).fit(X, Y)
    shapes, counts = np.unique(model.candidates_["hidden_layer_sizes"], return_counts=True)
    assert (shapes.tolist(), counts.tolist()) == (["16", "16,16", "32", "32,16"], [16] * 4)
    chosen = model.candidates_["hidden_layer_sizes"][model.candidates_["chosen"]]
    assert set(chosen) == {",".join(map(str, model.widths_[1:-1]))}
    assert len(chosen) == 4


def test_no_more_are_averaged_than_there_are_starts():
    few, all_of_them = (PLURegressor((4,), n_init=3, n_best=best, max_iter=50, random_state=0) for best in (16, 3))
    assert few.fit(X, Y).theta_.shape[1] == 3
    np.testing.assert_array_equal(few.theta_, all_of_them.fit(X, Y).theta_)
    assert few.n_best == 16


@pytest.mark.parametrize("kind", [float, bool, np.int8, object])
def test_classes_of_validation_are_compared_by_value(kind):
    y = (X[:, 0] > 0).astype(np.int64)
    options = {"n_init": 4, "max_iter": 50, "random_state": 0}
    same, other = (PLUClassifier((4,), **options).fit(X, y, X_val=X, y_val=val) for val in (y, y.astype(kind)))
    np.testing.assert_array_equal(same.theta_, other.theta_)


@pytest.mark.parametrize("val", [2.0, "1", 0.5])
def test_a_class_of_validation_that_is_not_in_y(val):
    y = (X[:, 0] > 0).astype(np.int64)
    with pytest.raises(ValueError, match=f"y_val has the class {val!r}"):
        PLUClassifier((4,), n_init=4).fit(X, y, X_val=X[:3], y_val=np.array([val] * 3))


def test_classes_of_validation_are_one_for_each_row():
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match="one class for each row"):
        PLUClassifier((4,), n_init=4).fit(X, y, X_val=X[:3], y_val=np.c_[y[:3], 1 - y[:3]])
