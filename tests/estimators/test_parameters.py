"""A wrong parameter is one line with its value and the rule; right ones may be written in many ways."""

import math

import numpy as np
import pytest

from plunit.sklearn import PLUClassifier, PLUDensity, PLURegressor

X = np.linspace(-1, 1, 40)[:, None]
Y = np.abs(X[:, 0])
CLASSES = (X[:, 0] > 0).astype(np.int64)
SIZES = (0, True, 8.0, {}, (8, -1), (8, "a"), ((8,), (8, 8)), "big")
WRONG = [
    *((PLURegressor, {"hidden_layer_sizes": value}, "each of hidden_layer_sizes, if not .auto., ") for value in SIZES),
    (PLURegressor, {"hidden_layer_sizes": (10**6,)}, r"\(1000000,\) .*; the limit is 134217728: use smaller layers"),
    (PLURegressor, {"max_iter": 10**12}, "n_init = 128 and 1000000000000 steps need"),
    *((PLURegressor, {"activation": value}, "must be one of tanh, .*got") for value in ("swish", None, ["plu"])),
    *(
        (PLURegressor, {name: value}, f"{name} must be an integer of at least 1, got ")
        for name in ("n_init", "n_best", "max_iter", "n_iter_no_change", "batch_size")
        for value in (0, -3, 1.5, "3", True, math.nan)
    ),
    *(
        (PLURegressor, {"finish": value}, 'finish, if not "auto", must be .*got ')
        for value in (-1, 1.5, "all", None, True)
    ),
    (PLURegressor, {"batch_size": None}, "batch_size must be an integer of at least 1, got None"),
    *(
        (PLURegressor, {name: value}, rf"{name} must be a number in \(0, ")
        for name in ("learning_rate_init", "c", "validation_fraction")
        for value in (0, -1.0, math.nan, math.inf, "0.1", None, True)
    ),
    *(
        (PLURegressor, {name: value}, rf"{name} must be a number in \[0, inf\), got ")
        for name in ("alpha", "weight_decay", "tol")
        for value in (-1e-9, math.nan, math.inf, "0.1", None, True)
    ),
    *((PLURegressor, {name: "no"}, "True or False, got 'no'") for name in ("early_stopping", "verbose")),
    (PLURegressor, {"random_state": "a"}, "'a' cannot be used to seed"),
    *(
        (PLURegressor, {"activation": "plu_learned", name: value}, f"a learnable {name} must .*got {value}")
        for name, value in (("alpha", 0.0), ("alpha", 1.0), ("c", 1e-9))
    ),
    (PLUClassifier, {"class_weight": "all"}, "'all'"),
    *(
        (PLUClassifier, {"class_weight": {0: weight, 1: 1}}, f"finite numbers >= 0, got {{0: {weight}")
        for weight in (-1, math.nan)
    ),
    (PLUClassifier, {"class_weight": {7: 1.0}}, "not in class_weight"),
    *((PLUDensity, {"n_blocks": value}, "n_blocks, if not .auto., must be") for value in ("many", (2, -1), True)),
    (PLUDensity, {"n_blocks": ()}, "n_blocks must hold at least one number of blocks, got none"),
    *(
        (PLUDensity, options, f"{named}.* need .*; the limit is 134217728: use fewer blocks")
        for options, named in (
            ({"n_blocks": [0, 2], "n_init": 10**6}, "n_blocks = 2 with n_best = 4, n_init = 1000000"),
            ({"n_blocks": 10**7}, "n_blocks = 10000000"),
            ({"n_blocks": 0, "max_iter": 10**9}, "1000000000 steps"),
            ({"n_blocks": 2, "n_best": 10**6}, "n_best = 1000000"),
        )
    ),
    (PLUDensity, {"activation": "tanh"}, "activation must be one of smooth, plu, leaky, got 'tanh'"),
    *(
        (PLUDensity, {name: value}, f"{name} must be an integer of at least 1, got {value!r}")
        for name, value in (("n_init", 0), ("n_best", 1.5), ("max_iter", "auto"), ("batch_size", None))
    ),
    (PLUDensity, {"learning_rate_init": 0.0}, r"learning_rate_init must be a number in \(0, inf\), got 0.0"),
    (PLUDensity, {"validation_fraction": 1.0}, r"validation_fraction must be a number in \(0, 1\), got 1.0"),
    (PLUDensity, {"verbose": "yes"}, "verbose must be True or False, got 'yes'"),
]


@pytest.mark.parametrize(("kind", "options", "text"), WRONG)
def test_a_wrong_parameter(kind, options, text):
    with pytest.raises(ValueError, match=text) as caught:
        kind(**options).fit(X, CLASSES if kind is PLUClassifier else Y)
    assert len(str(caught.value).splitlines()) == 1


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


@pytest.mark.parametrize("estimator", [PLUClassifier, PLURegressor])
@pytest.mark.parametrize("kind", [float, bool, np.int8, object])
def test_targets_of_validation_are_compared_by_value(estimator, kind):
    options = {"n_init": 4, "max_iter": 50, "random_state": 0}
    both = (CLASSES, CLASSES.astype(kind))
    same, other = (estimator((4,), **options).fit(X, CLASSES, X_val=X, y_val=val) for val in both)
    np.testing.assert_array_equal(same.theta_, other.theta_)


@pytest.mark.parametrize(
    ("kind", "val", "text"),
    [
        *((PLUClassifier, np.array([val] * 40), f"y_val has the class {val!r}") for val in (2.0, "1", 0.5)),
        (PLUClassifier, np.c_[CLASSES, 1 - CLASSES], "one class for each row"),
        (PLURegressor, np.zeros((40, 2)), "y_val and y must have the same number of columns, 1, got 2"),
        (PLURegressor, None, "X_val and y_val must be given together"),
        (PLURegressor, Y[:3], "inconsistent numbers of samples"),
    ],
)
def test_wrong_rows_for_validation(kind, val, text):
    with pytest.raises(ValueError, match=text):
        kind((4,), n_init=4).fit(X, CLASSES, X_val=X, y_val=val)
