"""Functions given as text, such as "sin(x) + x / 3": parsed without being executed, computed and bounded by NumPy.

Start with `parsing`: `parse` turns a text into an `Expression`, which computes values. `intervals` encloses them in
boxes, `forms` does so more tightly, and `sup_error` (`distance`) compares the function with a curve or a network.

>>> from plunit.pieces import Curve
>>> f = parse("x**2")
>>> line = Curve([0, 1], [[0], [1]], [[1]])
>>> found = sup_error(f, line, [(0, 1)])
>>> found.x, found.value, round(found.bound, 3)
((0.5,), 0.25, 0.25)
"""

from plunit.expressions.distance import MOST_VARIABLES, SupError, sup_error
from plunit.expressions.expression import Expression, ExpressionError, finite_values
from plunit.expressions.parsing import parse

__all__ = [
    "MOST_VARIABLES",
    "Expression",
    "ExpressionError",
    "SupError",
    "finite_values",
    "parse",
    "sup_error",
]
