"""What `fit` does with rows, weights, seeds and time."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from plunit.base.progress import ProgressLine
from plunit.sklearn import PLUClassifier, PLUDensity, PLURegressor

RNG = np.random.default_rng(0)
X = RNG.integers(-5, 5, (90, 2)) / 2 + 0.25
TARGETS = {
    "number": X[:, 0] * X[:, 1],
    "numbers": np.stack([X[:, 0], np.abs(X[:, 1])], axis=1),
    "two classes": X[:, 0] > X[:, 1],
    "three classes": np.digitize(X[:, 0], [-1, 1]),
    "labels": (X > 0.5).astype(int),
}
FEW = {"hidden_layer_sizes": (6,), "n_init": 8, "n_best": 2, "max_iter": 60, "random_state": 3}
MODELS = [
    (PLURegressor(**FEW), "number"),
    (PLURegressor(**FEW), "numbers"),
    (PLUClassifier(**FEW), "two classes"),
    (PLUClassifier(**FEW), "labels"),
    (PLUClassifier(**FEW, class_weight="balanced"), "three classes"),
    (PLUClassifier(**FEW, class_weight={0: 0.1, 1: 0.3, 2: 0.7}), "three classes"),
]


def bits(model, *data):
    return model.fit(*data).theta_.tobytes()


@pytest.mark.parametrize(("model", "name"), MODELS)
def test_weights_are_numbers_of_rows_and_their_order_does_not_matter(model, name):
    y, times = TARGETS[name], RNG.integers(0, 7, 90)
    repeated = bits(model, np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    assert bits(model, X, y, times) == repeated
    assert bits(model, X[times > 0], y[times > 0], times[times > 0]) == repeated
    weight, order = RNG.random(90), RNG.permutation(90)
    assert bits(model, X, y, weight) == bits(model, X[order], y[order], weight[order])
    again = type(model)(**{**model.get_params(), "random_state": 4})
    assert len({repeated, bits(model, X, y), bits(again, X, y)}) == 3


def test_a_class_whose_rows_have_no_weight_is_absent():
    y = TARGETS["three classes"]
    model = PLUClassifier(**FEW).fit(X, y, y != 1)
    assert model.classes_.tolist() == [0, 2]


def test_rows_must_have_some_weight():
    with pytest.raises(ValueError, match="ample weights"):  # in scikit-learn's words, where it has some
        PLURegressor(**FEW).fit(X, TARGETS["number"], np.zeros(90))
    with pytest.raises(ValueError, match="all sample weights are 0; give at least one row a positive weight"):
        PLUClassifier(**FEW, class_weight={False: 0, True: 0}).fit(X, TARGETS["two classes"])


def test_balanced_classes_have_equal_weights():
    """Where nothing is known about x, the odds are those of the weights."""
    y = np.arange(400) < 40
    x = np.zeros((400, 1))
    options = {"hidden_layer_sizes": (), "n_init": 4, "n_best": 1, "early_stopping": False, "random_state": 0}
    chances = [PLUClassifier(**options, class_weight=w).fit(x, y).predict_proba(x)[0, 1] for w in (None, "balanced")]
    np.testing.assert_allclose(chances, [0.1, 0.5], atol=1e-4)


@pytest.mark.parametrize(
    ("model", "ask"),
    [
        (PLURegressor("auto", n_init=40, max_iter=40, random_state=0), PLURegressor.predict),
        (PLUDensity((0, 1, 4), max_iter=200, random_state=0), PLUDensity.score_samples),
    ],
)
def test_the_number_of_threads_does_not_matter(monkeypatch, model, ask):
    x, found = np.random.default_rng(0).normal(size=(300, 3)) ** 2, []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(bits(model, x, x[:, 0] * x[:, 1]) + ask(model, x).tobytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_units_do_not_matter(small, table, scale):
    (x, y), options = table, {**small, "max_iter": 500}
    plain = PLURegressor(**options).fit(x, y).predict(x)
    tolerance = 1e-3 * y.std()
    np.testing.assert_allclose(PLURegressor(**options).fit(x * scale, y).predict(x * scale), plain, atol=tolerance)
    np.testing.assert_allclose(PLURegressor(**options).fit(x, y * scale).predict(x) / scale, plain, atol=tolerance)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: (x + 1e12, y),
        lambda x, y: (x, y + 1e12),
        lambda x, y: (np.column_stack([np.full(200, 7.0), x, np.zeros(200)]), y),
    ],
    ids=["inputs far from 0", "targets far from 0", "constant columns"],
)
def test_offsets_and_constant_columns_do_not_matter(small, table, change):
    x, y = change(*table)
    assert PLURegressor(**small).fit(x, y).score(x, y) > 0.97


@pytest.mark.parametrize(
    ("factor", "rate", "text"),
    [
        (1e-310, 0.02, "overflow double precision in the units of the data; scale X and y first"),
        (1.0, 1e38, "no start gave a finite loss; use a smaller learning_rate_init"),
    ],
)
def test_numbers_that_are_not_finite_are_named(small, table, factor, rate, text):
    with pytest.raises(ValueError, match=text):
        PLURegressor(**{**small, "learning_rate_init": rate}).fit(table[0] * factor, table[1])


def test_no_hidden_layer_is_linear_regression(table):
    x, y = table
    ours = PLURegressor((), n_init=2, n_best=1, early_stopping=False, random_state=0).fit(x, y)
    theirs = LinearRegression().fit(x, y)
    np.testing.assert_allclose(ours.coefs_[0][:, 0], theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercepts_[0], theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 31])
def test_small_tables(small, n):
    x = np.arange(n, dtype=float)[:, None]
    assert np.isfinite(PLURegressor(**small).fit(x, x[:, 0]).predict(x)).all()


def test_early_stopping_keeps_rows(small, table):
    """Without it all rows are trained on, and they decide."""
    x, y = table
    noise = y + RNG.normal(size=200)
    every = PLURegressor(**{**small, "n_best": 1}, early_stopping=False).fit(x, noise)
    some = PLURegressor(**{**small, "n_best": 1}).fit(x, noise)
    assert every.best_loss_ == pytest.approx(1 - every.score(x, noise), rel=1e-4)
    assert some.best_loss_ != pytest.approx(1 - some.score(x, noise), rel=1e-2)


def test_patience_ends_early(small, table):
    ends = [
        PLURegressor(**small, max_iter=1000, n_iter_no_change=n, tol=tol).fit(*table).n_iter_
        for n, tol in ((None, 0.0), (100, 0.0), (100, 10.0))
    ]
    assert ends[0] == 1000
    assert ends[2] == 110  # the first look is an improvement
    assert ends[2] < ends[1]


@pytest.mark.parametrize("steps", [1, 7, 100, 250])
def test_steps(small, table, steps):
    model = PLURegressor(**small, max_iter=steps, finish=0).fit(*table)
    assert model.n_iter_ == steps
    assert len(model.loss_curve_) == -(-steps // 16)
    assert len(model.validation_scores_) == min(steps, 125 if steps == 250 else 100)
    assert model.candidates_["validation_loss"][0] == pytest.approx(1 - model.validation_scores_.max(), abs=1e-6)


def test_the_loss_on_noise_is_not_that_of_the_luckiest_fold(small):
    """Its true value is 1. The members are chosen by the same rows, which leaves the mean a little lower."""
    found = []
    for seed in range(6):
        x, y = np.split(np.random.default_rng(seed).normal(size=(60, 3)), [2], axis=1)
        model = PLURegressor(**{**small, "n_init": 64, "n_best": 16, "random_state": seed}).fit(x, y[:, 0])
        found.append((model.best_loss_, model.candidates_["validation_loss"].min()))
    mean, least = np.mean(found, axis=0)
    assert 0.8 < mean < 1.1
    assert least < 0.5


@pytest.mark.parametrize(
    ("model", "starts"), [(PLURegressor(**FEW), 8), (PLUDensity((0, 2), n_init=2, n_best=2, max_iter=200), 4)]
)
def test_progress_is_shown_if_asked_for(model, starts, capfd):
    model.fit(X, TARGETS["number"])
    assert capfd.readouterr() == ("", "")
    model.set_params(verbose=True).fit(X, TARGETS["number"])
    out, err = capfd.readouterr()
    lines = err.split("\r")[1:]
    assert out == ""
    assert all(line.startswith(f"{starts} starts [") for line in lines)
    assert ["\n" in line for line in lines] == [False] * (len(lines) - 1) + [True]
    assert "[" + "#" * 30 + "]" in lines[-1]
    for done in (0.5, 1.5):  # a part that was stopped early may count as more than all
        ProgressLine(starts)(done, 1.0)
    assert [text.count("#") for text in capfd.readouterr().err.split("\r")[1:]] == [15, 30]


def test_rows_for_validation_of_ones_own_decide():
    rng = np.random.default_rng(0)
    x, other = rng.uniform(-1, 1, (80, 2)), rng.uniform(-1, 1, (40, 2))
    model = PLURegressor((8,), n_init=16, n_best=1, max_iter=200, random_state=0)
    model.fit(x, x[:, 0], X_val=other, y_val=other[:, 0])
    scaled = (model.predict(other) - other[:, 0]) / x[:, 0].std()
    assert model.best_loss_ == pytest.approx(np.mean(scaled**2), rel=1e-4)


@pytest.mark.parametrize("value", [0.0, 7.0, -1e15, 1e-200])
def test_a_constant_is_predicted(value):
    model = PLURegressor(**FEW).fit(X, np.full(len(X), value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12, atol=1e-12)


def test_huge_weights_are_weights():
    some, huge = (PLURegressor(**FEW).fit(X, X[:, 0], np.full(len(X), w)) for w in (1.0, 1e307))
    np.testing.assert_array_equal(some.theta_, huge.theta_)


def test_a_fit_that_fails_changes_nothing():
    model = PLUClassifier(**FEW).fit(X, X[:, 0] > 0)
    before = model.predict(X)
    with pytest.raises(ValueError, match="n_init"):
        model.set_params(n_init=10**9).fit(np.hstack([X, X]), np.array(["u", "v", "w"] * 30))
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.predict(X), before)
    fresh = PLUClassifier(n_init=10**9)
    with pytest.raises(ValueError, match="n_init"):
        fresh.fit(X, X[:, 0] > 0)
    assert vars(fresh) == fresh.get_params()


@pytest.mark.parametrize(("noise", "gains"), [(0.0, True), (0.5, False)])
def test_a_function_without_noise_is_finished_by_second_order_steps(noise, gains):
    rng = np.random.default_rng(5)
    x, fresh = rng.uniform(-2, 2, (2, 1500, 2))
    y = np.sin(x[:, 0]) * x[:, 1] + noise * rng.normal(size=len(x))
    options = {"hidden_layer_sizes": (8, 8), "n_init": 32, "n_best": 1, "random_state": 0}
    adam, auto = (PLURegressor(**options, finish=finish).fit(x, y) for finish in (0, "auto"))
    errors = [np.std(model.predict(fresh) - np.sin(fresh[:, 0]) * fresh[:, 1]) for model in (adam, auto)]
    assert (errors[1] < 0.85 * errors[0]) == gains
    assert (adam.theta_.tobytes() == auto.theta_.tobytes()) != gains
