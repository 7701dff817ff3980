"""`plunit fit`: the best small network for a table or a function, its error, and its exact formula.

A `Problem` enters `solve` (open `problems`, then `solving`) and leaves as `Found`; `output` writes text, files and the
page, with the figure of `picture`. What needs scikit-learn is loaded when it is used.
"""

from typing import TYPE_CHECKING, Any

from plunit.fitting.problems import Problem, of_drawing, of_expression, of_table

if TYPE_CHECKING:
    from plunit.fitting.solving import FitSettings, Found, solve

__all__ = ["FitSettings", "Found", "Problem", "of_drawing", "of_expression", "of_table", "solve"]


def __getattr__(name: str) -> Any:
    if name not in ("Found", "FitSettings", "solve"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from plunit.fitting import solving

    return getattr(solving, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
