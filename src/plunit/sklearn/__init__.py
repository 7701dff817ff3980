"""The best of many small networks, as estimators of scikit-learn; the fitted function is known exactly.

Arrays enter `fit` and leave `predict`; the exact function leaves as `curve_`, `network_` or a file. Open `regressor`
first: it and `classifier` share `network_estimator`, which deals the rows into `folds` for the search in
`plunit.ensemble.halving`, and `fitted`, which has what comes after it. `density` has `PLUDensity`; `base` is shared by
all.
"""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    from plunit.base.errors import missing

    raise missing(error, "sklearn") from None

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plunit.sklearn.regressor import PLURegressor

if TYPE_CHECKING:
    from plunit.sklearn.classifier import PLUClassifier
    from plunit.sklearn.density.estimator import PLUDensity

__all__ = ["PLUClassifier", "PLUDensity", "PLURegressor"]

_LATER = {"PLUClassifier": "classifier", "PLUDensity": "density.estimator"}
"""Modules that are loaded when one of their names is used first."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
