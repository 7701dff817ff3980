"""The estimators in scikit-learn's machinery, with pandas, joblib and Dask, and in files."""

import pickle

import numpy as np
import pytest
from scikit_checks import counted, odd_parts
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from plunit.sklearn import PLUClassifier, PLUDensity, PLURegressor

RNG = np.random.default_rng(0)
FEW = {"n_init": 2, "n_best": 2, "max_iter": 200, "random_state": 3}
MIXED = np.column_stack([RNG.normal(size=200), RNG.poisson(3, 200), RNG.uniform(0, 1, 200)])
CHECKED = [
    (PLURegressor(n_init=16, n_best=4, max_iter=500), MLPRegressor()),
    (PLUClassifier(n_init=16, n_best=4, max_iter=500), MLPClassifier()),
    (PLUDensity((0, 2), n_init=2, max_iter=100), KernelDensity()),
]


@pytest.mark.parametrize(("ours", "theirs"), CHECKED)
def test_all_checks_of_scikit_learn_pass(ours, theirs):
    """None is expected to fail, and there are as many as for its own estimators."""
    counts, others = counted(ours)
    assert set(others) <= {"check_array_api_input"}, others  # skipped: it needs SCIPY_ARRAY_API
    assert set(counts) <= {"passed", "skipped"}
    assert counts.total() >= sum(1 for _ in estimator_checks_generator(theirs))


class Broken(PLURegressor):
    def predict(self, X, return_std=False):  # noqa: N803
        return super().predict(X)[:1]


def test_a_check_can_fail():
    counts, _ = counted(Broken(n_init=16, n_best=4, max_iter=10))
    assert counts["failed"] > 3


@pytest.fixture(scope="module")
def models(small, table):
    """Fitted estimators of all kinds, each with the function that it is asked for, and rows."""
    x, y = table
    fits = {
        "number": PLURegressor(**small, max_iter=50).fit(x, y),
        "numbers": PLURegressor(**{**small, "hidden_layer_sizes": "auto", "max_iter": 50}).fit(x, np.c_[y, -y]),
        "classes": PLUClassifier(**small, max_iter=50, class_weight={"up": 1.0, "down": 2.0}).fit(
            x, np.where(y > 0, "up", "down")
        ),
        "labels": PLUClassifier(**small, max_iter=50).fit(x, x > 0),
        "density": PLUDensity((0, 2), bounds={2: (0, 1)}, **FEW).fit(MIXED),
    }
    return {
        name: (one, type(one).score_samples, MIXED) if name == "density" else (one, type(one).predict, x)
        for name, one in fits.items()
    }


KINDS = ["number", "numbers", "classes", "labels", "density"]


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_plain_and_pickles_are_the_same_model(models, kind):
    model, ask, x = models[kind]
    assert odd_parts({**vars(model), "bounds": None, "class_weight": None}) == []
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(ask(again, x), ask(model, x))
    if kind != "density":
        np.testing.assert_array_equal(again.network_(x), model.network_(x))


def test_what_is_not_plain_is_found():
    assert odd_parts({"a": [1, (2.0, {"b": len})], "c": np.array([object])}) == [len, object]


@pytest.mark.parametrize("kind", KINDS)
def test_skops_trusts_our_classes_and_nothing_else(models, kind):
    skops = pytest.importorskip("skops.io")
    model, ask, x = models[kind]
    data = skops.dumps(model)
    ours = f"{type(model).__module__}.{type(model).__name__}"
    assert skops.get_untrusted_types(data=data) == [ours]
    again = skops.loads(data, trusted=[ours])
    np.testing.assert_array_equal(ask(again, x), ask(model, x))


@pytest.mark.parametrize("kind", KINDS)
def test_clones_are_not_fitted(models, kind):
    again = clone(models[kind][0])
    assert again.get_params() == models[kind][0].get_params()
    assert not any(hasattr(again, name) for name in ("theta_", "network_", "coefs_"))


def test_names_of_columns(small, table):
    pandas = pytest.importorskip("pandas")
    x, y = table
    frame = pandas.DataFrame(x, columns=["width", "height"])
    model = PLURegressor(**small, max_iter=50).fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["width", "height"]
    np.testing.assert_array_equal(model.predict(frame), PLURegressor(**small, max_iter=50).fit(x, y).predict(x))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "width"]])
    steps = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), PLURegressor(**small))
    steps.set_output(transform="pandas").fit(frame, y)
    assert steps.score(frame, y) > 0.99
    assert steps[-1].feature_names_in_.tolist() == ["width", "height", "width^2", "width height", "height^2"]


def test_names_of_columns_of_a_density(models):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(MIXED.copy(), columns=["x", "k", "share"])
    model = PLUDensity((0, 2), bounds={"share": (0, 1)}, integers=["k"], **FEW).fit(frame)
    assert model.feature_names_in_.tolist() == ["x", "k", "share"]
    np.testing.assert_array_equal(model.score_samples(frame), models["density"][0].score_samples(MIXED))
    with pytest.raises(ValueError, match="feature names should match"):
        model.score_samples(frame[["k", "x", "share"]])
    frame["share"] += 1
    with pytest.raises(ValueError, match=r"column 2 \(share\) holds"):
        model.fit(frame)


def test_grid_search_here_and_on_a_cluster(small, table):
    """On the cluster by joblib's backend for Dask."""
    distributed = pytest.importorskip("distributed")
    import joblib

    grid = {"hidden_layer_sizes": [(), (8,)], "activation": ["plu", "tanh"]}
    search = GridSearchCV(PLURegressor(**small, max_iter=100), grid, cv=2)
    here = clone(search).fit(*table)
    cluster = distributed.LocalCluster(2, processes=False, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster), joblib.parallel_backend("dask"):
        there = clone(search).fit(*table)
    assert here.best_params_["hidden_layer_sizes"] == (8,)
    assert there.cv_results_["mean_test_score"].tolist() == here.cv_results_["mean_test_score"].tolist()


def test_densities_in_cross_validation_and_pipelines():
    x = RNG.normal(size=(300, 2)) ** 3
    found = GridSearchCV(PLUDensity(**FEW), {"n_blocks": [0, 4]}, cv=3).fit(x)
    assert found.best_params_ == {"n_blocks": 4}
    steps = make_pipeline(StandardScaler(), PLUDensity((0,), **FEW)).fit(x)
    determinant = np.log(steps[0].scale_).sum()
    plain = PLUDensity((0,), **FEW).fit(x)
    np.testing.assert_allclose(steps.score_samples(x) - determinant, plain.score_samples(x), rtol=1e-6)
