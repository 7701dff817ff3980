"""PLUDensity in scikit-learn's machinery, its parameters, and its files."""

import pickle
from collections import Counter

import numpy as np
import pytest
from scikit_checks import counted, odd_parts
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from plunit.sklearn import PLUDensity

RNG = np.random.default_rng(0)
FEW = {"n_init": 2, "n_best": 2, "max_iter": 200, "random_state": 3}
X = np.column_stack([RNG.normal(size=200), RNG.poisson(3, 200), RNG.uniform(0, 1, 200)])
FITTED = {"n_blocks": (0, 2), "bounds": {2: (0, 1)}, **FEW}


def test_all_checks_pass():
    """As many as for KernelDensity."""
    counts, others = counted(PLUDensity((0, 2), n_init=2, max_iter=100))
    assert set(others) <= {"check_array_api_input"}, others  # skipped: it needs SCIPY_ARRAY_API
    assert counts == Counter(passed=counts.total() - len(others), skipped=len(others)) - Counter()
    assert counts.total() >= sum(1 for _ in estimator_checks_generator(KernelDensity()))


class Broken(PLUDensity):
    def score_samples(self, X):  # noqa: N803
        return super().score_samples(X)[:1]


def test_a_check_can_fail():
    counts, _ = counted(Broken((0,), max_iter=10))
    assert counts["failed"] > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_blocks": "many"}, "n_blocks must be \"auto\" or integers of 0 or more, got 'many'"),
        ({"n_blocks": (2, -1)}, r"n_blocks must be .* got \(2, -1\)"),
        ({"n_blocks": ()}, "n_blocks must name a number of blocks, got none"),
        ({"activation": "tanh"}, "activation must be one of smooth, plu, leaky, got 'tanh'"),
        ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
        ({"n_best": 1.5}, "n_best must be an integer of at least 1, got 1.5"),
        ({"max_iter": "auto"}, "max_iter must be an integer of at least 1, got 'auto'"),
        ({"batch_size": None}, "batch_size must be an integer of at least 1, got None"),
        ({"learning_rate_init": 0.0}, r"learning_rate_init must be a number in \(0, inf\), got 0.0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be a number in \(0, 1\), got 1.0"),
        ({"verbose": "yes"}, "verbose must be True or False, got 'yes'"),
        ({"integers": ["a"]}, r"integers names columns by 0, \.\.\., 2, got 'a'"),
    ],
)
def test_wrong_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        PLUDensity(**{**FEW, **wrong}).fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(bad):
    wrong = X.copy()
    wrong[3, 1] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        PLUDensity(**FITTED).fit(wrong)
    with pytest.raises(ValueError, match="Input X contains"):
        PLUDensity(**FITTED).fit(X).score_samples(wrong)


def test_state_is_plain():
    assert odd_parts({**vars(PLUDensity(**FITTED).fit(X)), "bounds": None}) == []


def test_pickles():
    model = PLUDensity(**FITTED).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_skops_trusts_our_class_and_nothing_else():
    skops = pytest.importorskip("skops.io")
    model = PLUDensity(**FITTED).fit(X)
    data = skops.dumps(model)
    assert skops.get_untrusted_types(data=data) == ["plunit.sklearn.density.estimator.PLUDensity"]
    again = skops.loads(data, trusted=["plunit.sklearn.density.estimator.PLUDensity"])
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_clones_are_not_fitted():
    model = PLUDensity(**FITTED).fit(X)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "theta_")
    assert not hasattr(again, "network_")


def test_cross_validation_and_grid_search():
    x = RNG.normal(size=(300, 2)) ** 3
    scores = cross_val_score(PLUDensity((0, 4), **FEW), x, cv=3)
    found = GridSearchCV(PLUDensity(**FEW), {"n_blocks": [0, 4]}, cv=3).fit(x)
    assert found.best_params_ == {"n_blocks": 4}
    assert found.best_score_ > cross_val_score(PLUDensity(0, **FEW), x, cv=3).mean()
    assert scores.mean() == pytest.approx(found.best_score_, abs=0.2)


def test_pipelines():
    x = RNG.normal(5, 2, (200, 2))
    steps = make_pipeline(StandardScaler(), PLUDensity((0,), **FEW)).fit(x)
    plain = PLUDensity((0,), **FEW).fit(x)
    determinant = np.log(steps[0].scale_).sum()
    np.testing.assert_allclose(steps.score_samples(x) - determinant, plain.score_samples(x), rtol=1e-6)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.copy(), columns=["x", "k", "share"])
    model = PLUDensity((0, 2), bounds={"share": (0, 1)}, integers=["k"], **FEW).fit(frame)
    assert model.feature_names_in_.tolist() == ["x", "k", "share"]
    assert model.n_features_in_ == 3
    plain = PLUDensity((0, 2), bounds={2: (0, 1)}, **FEW).fit(X)
    np.testing.assert_array_equal(model.score_samples(frame), plain.score_samples(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.score_samples(frame[["k", "x", "share"]])
    frame["share"] += 1
    with pytest.raises(ValueError, match=r"column 2 \(share\) holds"):
        model.fit(frame)


@pytest.mark.parametrize("activation", ["smooth", "plu", "leaky"])
def test_to_torch_is_the_same_density(activation):
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(200, 2)) * [1e3, 1e-3] + 5
    model = PLUDensity((3,), activation, **{**FEW, "n_best": 1}).fit(x)
    flow = model.to_torch()
    with torch.no_grad():
        np.testing.assert_allclose(flow.log_prob(torch.from_numpy(x)).numpy(), model.score_samples(x), rtol=1e-9)
    assert flow.sample(4).dtype == torch.float64


def test_to_torch_has_no_bounds():
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="to_torch is for columns without bounds, integers and constants"):
        PLUDensity(**FITTED).fit(X).to_torch()
