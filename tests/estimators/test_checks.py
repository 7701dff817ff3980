"""scikit-learn's own checks: none fails, none is expected to, and there are as many as for its perceptrons."""

import pytest
from scikit_checks import counted
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

from plunit.sklearn import PLUClassifier, PLURegressor

PAIRS = [(PLURegressor, MLPRegressor), (PLUClassifier, MLPClassifier)]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_all_checks_pass(ours, theirs):
    counts, others = counted(ours(n_init=16, n_best=4))
    assert set(others) <= {"check_array_api_input"}, others  # skipped: it needs SCIPY_ARRAY_API
    assert set(counts) <= {"passed", "skipped"}
    assert counts.total() >= sum(1 for _ in estimator_checks_generator(theirs()))


class Broken(PLURegressor):
    def predict(self, X, return_std=False):  # noqa: N803
        return super().predict(X)[:1]


def test_a_check_can_fail():
    counts, _ = counted(Broken(n_init=16, n_best=4, max_iter=10))
    assert counts["failed"] > 3
