"""The best of many small networks, as scikit-learn estimators; the fitted function is known exactly.

`fit` and `predict` use arrays; the exact function is available as `curve_`, `network_` or a file. Start with
`regressor`: it and `classifier` share `network_estimator`, which splits the rows into `folds` for the search in
`plunit.ensemble.halving`, and `fitted`, which has the methods of fitted networks. `density` has `PLUDensity`; all share
`base`.
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
"""Modules that are loaded when one of their names is first used."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
