"""The best of many small networks, as estimators of scikit-learn; the fitted function is known exactly.

Arrays enter `fit` and leave `predict`; the exact function leaves as `curve_`, `network_` or a file. Open `regressor`
first: it and `classifier` share `base`, which prepares the rows for the search in `plunit.ensemble.halving`, and what
comes after it in `fitted`. `density` has `PLUDensity`.
"""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    from plunit.base.errors import missing

    raise missing(error, "sklearn") from None

from plunit.sklearn.classifier import PLUClassifier
from plunit.sklearn.density.estimator import PLUDensity
from plunit.sklearn.regressor import PLURegressor

__all__ = ["PLUClassifier", "PLUDensity", "PLURegressor"]
