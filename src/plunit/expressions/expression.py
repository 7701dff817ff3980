"""`Expression`: a function as a list of steps for a stack machine; and the functions that it may call.

`run_steps` runs the steps on values of any kind: arrays of numbers here, bounds of them in `intervals` and `forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from plunit.base.errors import quote
from plunit.pieces.arrays import Floats, blocks

_CHUNK = 2**14
"""Points computed at a time: an expression of 10,000 characters may need hundreds of arrays at once."""


class ExpressionError(ValueError):
    """Raised for a text that is not an expression, with one line: the column, the word, the rule and the remedy."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"column {column}: {problem}")
        self.column, self.problem = column, problem


class Function(NamedTuple):
    """A NumPy function and the names of its arguments; "condition" is a comparison, the others are numbers."""

    compute: Callable[..., Any]
    arguments: tuple[str, ...] = ("x",)


_PAIR = ("a", "b")
_OF_TWO = {
    **{"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power, "<": np.less},
    **{"<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal},
}
OPERATORS = {symbol: Function(compute, _PAIR) for symbol, compute in _OF_TWO.items()}
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

OTHER_NAMES = {f"a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")}
OTHER_NAMES |= {"ln": "log", "max": "maximum", "min": "minimum"}

CONSTANTS = {"pi": float(np.pi), "e": float(np.e)}

NAMES = sorted({*FUNCTIONS, *OTHER_NAMES})
"""All names that an expression can call."""


class Step(NamedTuple):
    """A step of a stack machine: push a number, push an input, or replace the last values by a function of them."""

    name: str
    value: float | int | Function


def run_steps(
    steps: Sequence[Step], inputs: Sequence[Any], number: Callable[[Any], Any], apply: Callable[..., Any]
) -> Any:
    """Run the stack machine on values of any kind, which number(value) and apply(name, function, arguments) return."""
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for name, value in steps:
            if isinstance(value, Function):
                count = len(value.arguments)
                stack[-count:] = [apply(name, value, stack[-count:])]
            else:
                stack.append(inputs[int(value)] if name == "input" else number(value))
    return stack[0]


@dataclass(frozen=True)
class Expression:
    """A function of named variables; `parse` returns one.

    Args:
        text: the text as it was understood.
        names: the variables, in the order of their first appearance.
        steps: the program of the stack machine.

    Called with one array for each name, it returns a float64 array of their common shape. If f has no variables, the
    arrays only give the shape. Where f has no finite value, the result is inf or NaN, without a warning;
    `finite_values` raises instead.

    >>> from plunit.expressions import parse
    >>> f = parse("where(x < 0, a * x, sqrt(x))")
    >>> f.names, f([-2, 4], 10).tolist()
    (('x', 'a'), [-20.0, 2.0])
    """

    text: str
    names: tuple[str, ...]
    steps: tuple[Step, ...] = field(repr=False)

    def __call__(self, *inputs: Any) -> Floats:
        """Return f of arrays [...], one for each name, as an array [...]."""
        if self.names and len(inputs) != len(self.names):
            wanted = f"{len(self.names)} ({', '.join(self.names)})"
            raise TypeError(f"{quote(self.text)} needs one array for each variable, {wanted}, got {len(inputs)}")
        given = [np.asarray(item) for item in inputs]
        if wrong := [array.dtype for array in given if array.dtype.kind not in "biuf"]:
            raise TypeError(f"variables must be real numbers, got an array of {wrong[0]}")
        arrays = np.broadcast_arrays(*(array.astype(np.float64) for array in given))
        shape = arrays[0].shape if arrays else ()
        flat = [array.reshape(-1) for array in arrays]
        result = np.empty(shape).reshape(-1)
        for part in blocks(result.size, _CHUNK):
            values = [array[part] for array in flat]
            result[part] = run_steps(self.steps, values, float, lambda _, function, given: function.compute(*given))
        return result.reshape(shape)


def finite_values(expression: Expression, *inputs: Any) -> Floats:
    """Return f(inputs), or raise ValueError with the first point at which f is not a finite real number."""
    values = expression(*inputs)
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return values
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    arrays = np.broadcast_arrays(*(np.asarray(item, dtype=np.float64) for item in inputs))
    place = ", ".join(f"{name} = {array[first]!s}" for name, array in zip(expression.names, arrays, strict=False))
    found = "too large or infinite" if np.isinf(values[first]) else "undefined or not a real number"
    raise ValueError(
        f"{quote(expression.text)} is {found} at {place or 'every point'}; choose a domain on which it is finite, or "
        "give another value there with where(condition, a, b)"
    )
