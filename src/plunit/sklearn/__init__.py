"""The best of many small networks, as estimators of scikit-learn; the fitted function is known exactly.

Arrays enter `fit` and leave `predict`; the exact function leaves as `curve_`, `network_` or a file. Open `regressor`
first: it and `classifier` share `base`, which prepares the rows for the search in `plunit.ensemble.halving`, and what
comes after it in `fitted`. `density` has `PLUDensity`.

>>> import numpy as np
>>> from plunit.sklearn import PLURegressor
>>> x = np.linspace(-3, 3, 200)[:, None]
>>> model = PLURegressor((8,), n_init=16, n_best=1, random_state=0).fit(x, np.sin(x[:, 0]))
>>> bool(model.score(x, np.sin(x[:, 0])) > 0.99), model.curve_.pieces <= 17
(True, True)
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
