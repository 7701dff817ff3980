"""The estimators in scikit-learn's machinery, with pandas, joblib and Dask, and in files."""

import pickle

import numpy as np
import pytest
from scikit_checks import odd_parts
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from plunit.sklearn import PLUClassifier, PLURegressor


def models(small, table):
    x, y = table
    return [
        PLURegressor(**small, max_iter=50).fit(x, y),
        PLURegressor(**{**small, "hidden_layer_sizes": "auto", "max_iter": 50}).fit(x, np.stack([y, -y], axis=1)),
        PLUClassifier(**small, max_iter=50, class_weight="balanced").fit(x, np.where(y > 0, "up", "down")),
        PLUClassifier(**small, max_iter=50).fit(x, x > 0),
    ]


@pytest.mark.parametrize("i", range(4))
def test_state_is_plain(small, table, i):
    assert odd_parts(vars(models(small, table)[i])) == []


def test_what_is_not_plain_is_found():
    assert odd_parts({"a": [1, (2.0, {"b": len})], "c": np.array([object])}) == [len, object]


@pytest.mark.parametrize("i", range(4))
def test_pickles(small, table, i):
    model = models(small, table)[i]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(table[0]), model.predict(table[0]))
    np.testing.assert_array_equal(again.network_(table[0]), model.network_(table[0]))


@pytest.mark.parametrize("i", range(4))
def test_skops_trusts_our_classes_and_nothing_else(small, table, i):
    skops = pytest.importorskip("skops.io")
    model = models(small, table)[i]
    data = skops.dumps(model)
    ours = f"{type(model).__module__}.{type(model).__name__}"
    assert skops.get_untrusted_types(data=data) == [ours]
    again = skops.loads(data, trusted=[ours])
    np.testing.assert_array_equal(again.predict(table[0]), model.predict(table[0]))
    again.set_params(warm_start=True).fit(table[0], model.predict(table[0]))


@pytest.mark.parametrize("convert", [np.float32, lambda x: x.tolist(), np.asfortranarray])
def test_kinds_of_input(small, convert):
    """Numbers that float32 can hold."""
    x = np.random.default_rng(0).integers(-8, 8, (100, 2)) / 4
    y = x[:, 0] * x[:, 1]
    plain = PLURegressor(**small, max_iter=50).fit(x, y)
    other = PLURegressor(**small, max_iter=50).fit(convert(x), convert(y))
    assert plain.theta_.tobytes() == other.theta_.tobytes()
    np.testing.assert_array_equal(other.predict(convert(x)), plain.predict(x))


def test_pandas(small, table):
    pandas = pytest.importorskip("pandas")
    x, y = table
    frame = pandas.DataFrame(x, columns=["width", "height"])
    model = PLURegressor(**small, max_iter=50).fit(frame, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["width", "height"]
    np.testing.assert_array_equal(model.predict(frame), PLURegressor(**small, max_iter=50).fit(x, y).predict(x))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "width"]])


def test_pipelines_pass_names_on(small, table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=["width", "height"])
    steps = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), PLURegressor(**small))
    steps.set_output(transform="pandas").fit(frame, table[1])
    assert steps.score(frame, table[1]) > 0.99
    assert steps[-1].feature_names_in_.tolist() == ["width", "height", "width^2", "width height", "height^2"]


def search(small):
    grid = {"hidden_layer_sizes": [(), (8,)], "activation": ["plu", "tanh"]}
    return GridSearchCV(PLURegressor(**small, max_iter=200), grid, cv=3, n_jobs=2)


def test_grid_search(small, table):
    found = search(small).fit(*table)
    assert found.best_params_["hidden_layer_sizes"] == (8,)
    assert found.best_score_ > 0.9


def test_dask(small, table):
    """Through joblib's backend, as on a cluster."""
    distributed = pytest.importorskip("distributed")
    import joblib

    cluster = distributed.LocalCluster(2, processes=False, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster), joblib.parallel_backend("dask"):
        there = search(small).fit(*table)
    here = search(small).fit(*table)
    assert there.cv_results_["mean_test_score"].tolist() == here.cv_results_["mean_test_score"].tolist()


def test_scores_of_parts(small, table):
    scores = cross_val_score(PLUClassifier(**small), table[0], table[1] > 0, cv=3)
    assert len(scores) == 3
    assert min(scores) > 0.85


def test_clones_are_not_fitted(small, table):
    model = PLUClassifier(**small, class_weight={0: 1.0, 1: 2.0}, max_iter=20).fit(table[0], table[1] > 0)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "theta_")
    assert not hasattr(again, "network_")
