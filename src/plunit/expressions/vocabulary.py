"""What an expression may call: each name with NumPy's function, its arguments and its result; and its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class ExpressionError(ValueError):
    """The text is no expression; the message gives the column, what was found, the rule and the remedy in one line."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"column {column}: {problem}")
        self.column, self.problem = column, problem


@dataclass(frozen=True)
class Function:
    """A function of numbers.

    Args:
        compute: NumPy's function.
        arguments: their names, for messages; one named "condition" is a comparison, all others are numbers.
        compares: whether the result is a condition instead of a number.
    """

    compute: Callable[..., Any]
    arguments: tuple[str, ...] = ("x",)
    compares: bool = False


_PAIR = ("a", "b")

OPERATORS = {
    "+": Function(np.add, _PAIR),
    "-": Function(np.subtract, _PAIR),
    "*": Function(np.multiply, _PAIR),
    "/": Function(np.divide, _PAIR),
    "**": Function(np.power, _PAIR),
    "<": Function(np.less, _PAIR, compares=True),
    "<=": Function(np.less_equal, _PAIR, compares=True),
    ">": Function(np.greater, _PAIR, compares=True),
    ">=": Function(np.greater_equal, _PAIR, compares=True),
    "==": Function(np.equal, _PAIR, compares=True),
    "!=": Function(np.not_equal, _PAIR, compares=True),
}
SIGNS = {"+": Function(np.positive), "-": Function(np.negative)}

_OF_ONE = (
    "abs sign floor ceil trunc round square sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan "
    "arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh"
)

FUNCTIONS = {
    **{name: Function(getattr(np, name)) for name in _OF_ONE.split()},
    "arctan2": Function(np.arctan2, ("y", "x")),
    "clip": Function(np.clip, ("x", "low", "high")),
    "heaviside": Function(np.heaviside, ("x", "middle")),
    "hypot": Function(np.hypot, _PAIR),
    "maximum": Function(np.maximum, _PAIR),
    "minimum": Function(np.minimum, _PAIR),
    "mod": Function(np.mod, _PAIR),
    "where": Function(np.where, ("condition", "a", "b")),
}

OTHER_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "ln": "log",
    "max": "maximum",
    "min": "minimum",
}

CONSTANTS = {"pi": float(np.pi), "e": float(np.e)}

NAMES = sorted({*FUNCTIONS, *OTHER_NAMES})
"""Every name that can be called."""
