"""text -> Expression: a grammar of our own, read from left to right with two stacks; nothing is ever executed.

    condition   number  < <= > >= == !=  number         (not chained)
    number      number + - * / ** number  |  + - number  |  (number)  |  name(number, ...)  |  variable  |  constant

From loose to tight: comparisons; + and -; * and /; the signs; **, which groups to the right. So -x**2 is -(x**2) and
2**-x**2 is 2**(-(x**2)), as in Python. There is no recursion, so no text can exhaust Python's stack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple, NoReturn

from plunit.expressions.expression import Expression, Step
from plunit.expressions.functions import CONSTANTS, FUNCTIONS, NAMES, OPERATORS, OTHER_NAMES, SIGNS, Function
from plunit.expressions.tokens import REMEDIES, ExpressionError, Token, shown, words

DEPTH = 100
"""The most parentheses that may be open at once."""

STEPS = 2_000
"""The most numbers, variables, operators and calls."""

_TIGHTNESS = {**dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 1), "+": 2, "-": 2, "*": 3, "/": 3, "**": 5}
_SIGN = 4
_OPEN = 0
_OPERAND = "a number, a variable, a function or ( must stand here"


class _Pending(NamedTuple):
    """An operator that waits for its right side, or a parenthesis that waits for its end."""

    name: str
    column: int
    tightness: int
    function: Function | None


@dataclass
class _State:
    steps: list[Step] = field(default_factory=list)
    conditions: list[bool] = field(default_factory=list)  # for each value on the stack: is it a condition?
    pending: list[_Pending] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # for each open parenthesis: the arguments before
    names: dict[str, int] = field(default_factory=dict)


def parse(text: str) -> Expression:
    """Return the function that a text means, e.g. "where(x < 0, exp(x), 1 + x)".

    Numbers, variables, + - * / ** ( ), comparisons, `where`, the constants pi and e, and NumPy's functions in
    `functions`. Raises ExpressionError, a ValueError, with the column and the remedy.

    >>> parse("-x**2 + a * x")(3, 1).tolist()
    -6.0
    >>> parse("x^2")
    Traceback (most recent call last):
    plunit.expressions.tokens.ExpressionError: column 2: '^' cannot stand in an expression; write ** for a power
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression must be a text, got {type(text).__name__}")
    state, operand = _State(), True
    for token in words(text):
        operand = _read_operand(state, token) if operand else _read_operator(state, token)
    if state.conditions[0]:
        raise ExpressionError(1, f"{shown(text)} is a comparison, not a number; write where(condition, 1, 0)")
    return Expression(text, tuple(state.names), tuple(state.steps))


def _read_operand(state: _State, token: Token) -> bool:
    """Read what may stand where a value begins; return whether a value must still follow."""
    if token.kind == "number":
        _put(state, token, Step("number", _finite(token)))
    elif token.kind == "name":
        _put(state, token, _named(state, token))
    elif token.kind == "call" or token.text == "(":
        _open(state, token)
        return True
    elif token.text in SIGNS:
        _wait(state, _Pending("sign " + token.text, token.column, _SIGN, SIGNS[token.text]))
        return True
    else:
        remedy = REMEDIES.get(token.text)
        raise ExpressionError(token.column, f"found {token}, but {_OPERAND}{'; ' + remedy if remedy else ''}")
    return False


def _read_operator(state: _State, token: Token) -> bool:
    """Read what may stand behind a value; return whether a value must follow."""
    if token.text in OPERATORS:
        _finish(state, _TIGHTNESS[token.text], token)
        _wait(state, _Pending(token.text, token.column, _TIGHTNESS[token.text], OPERATORS[token.text]))
        return True
    if token.text not in (")", ",", ""):
        _refuse(token)
    _finish(state, _OPEN + 1, token)
    if token.kind == "end":
        if state.pending:
            raise ExpressionError(state.pending[-1].column, "a parenthesis is opened here and never closed; add )")
        return False
    if not state.pending:
        problem = "closes no parenthesis; leave it out" if token.text == ")" else "may stand between arguments only"
        raise ExpressionError(token.column, f"{token} {problem}")
    state.counts[-1] += 1
    if token.text == ")":
        _close(state, state.pending.pop(), token)
        return False
    if state.pending[-1].function is None:
        raise ExpressionError(token.column, "',' may stand between arguments only; in numbers, write .")
    return True


def _refuse(token: Token) -> NoReturn:
    remedy = REMEDIES.get(token.text.rstrip("( \t\r\n"), "write * to multiply")
    raise ExpressionError(token.column, f"found {token}, but an operator or the end must stand here; {remedy}")


def _finite(token: Token) -> float:
    value = float(token.text)
    if math.isinf(value):
        raise ExpressionError(token.column, f"{token} is too large; numbers go up to 1.7e308")
    return value


def _named(state: _State, token: Token) -> Step:
    if token.text in CONSTANTS:
        return Step("number", CONSTANTS[token.text])
    if token.text in NAMES:
        raise ExpressionError(token.column, f"{token} is a function; write {_usage(token.text)}")
    if token.text.lower() in ("inf", "infinity", "nan"):
        raise ExpressionError(token.column, f"{token} is no finite number and cannot be a variable; take another name")
    if token.text in REMEDIES:
        raise ExpressionError(token.column, f"{token} cannot be a variable; {REMEDIES[token.text]}")
    return Step("input", state.names.setdefault(token.text, len(state.names)))


def _usage(name: str) -> str:
    return f"{name}({', '.join(FUNCTIONS[OTHER_NAMES.get(name, name)].arguments)})"


def _open(state: _State, token: Token) -> None:
    name = token.text[:-1].strip()
    if len(state.counts) >= DEPTH:
        raise ExpressionError(token.column, f"more than {DEPTH} parentheses are open; use fewer")
    if name and name not in NAMES:
        close = get_close_matches(name[:30], NAMES, n=3, cutoff=0.5)
        remedy = f"did you mean {' or '.join(close)}" if close else f"there are {', '.join(NAMES)}"
        times = f"; to multiply, write {name} * (" if name in state.names or name in CONSTANTS else ""
        raise ExpressionError(token.column, f"there is no function {shown(name)}; {remedy}{times}")
    function = FUNCTIONS[OTHER_NAMES.get(name, name)] if name else None
    state.pending.append(_Pending(name, token.column, _OPEN, function))
    state.counts.append(0)


def _close(state: _State, opened: _Pending, token: Token) -> None:
    count = state.counts.pop()
    if opened.function is None:
        return
    wanted = len(opened.function.arguments)
    if count != wanted:
        raise ExpressionError(
            token.column, f"{opened.name} needs {wanted} arguments, got {count}: {_usage(opened.name)}"
        )
    _apply(state, opened)


def _wait(state: _State, operator: _Pending) -> None:
    if len(state.pending) >= STEPS:
        raise ExpressionError(operator.column, f"an expression may have {STEPS:,} numbers, variables and operators")
    state.pending.append(operator)


def _finish(state: _State, tightness: int, token: Token) -> None:
    """Apply the operators that hold their right side more tightly than the next one, `token`."""
    while state.pending and state.pending[-1].tightness >= tightness + (token.text == "**"):
        if state.pending[-1].tightness == tightness == 1 and token.text in OPERATORS:
            raise ExpressionError(
                token.column, f"{token} follows another comparison; write where(a < b, where(b < c, 1, 0), 0)"
            )
        _apply(state, state.pending.pop())


def _apply(state: _State, operator: _Pending) -> None:
    assert operator.function is not None
    arguments = operator.function.arguments
    given = state.conditions[-len(arguments) :]
    for name, condition in zip(arguments, given, strict=True):
        if condition != (name == "condition"):
            label = operator.name.removeprefix("sign ")
            problem = (
                f"{label!r} needs numbers, but one side is a comparison; write where(a < b, 1, 0) for it"
                if condition
                else "where needs a comparison as its first argument, e.g. where(x < 0, a, b)"
            )
            raise ExpressionError(operator.column, problem)
    del state.conditions[-len(arguments) :]
    _put(state, Token("", "", operator.column), Step(OTHER_NAMES.get(operator.name, operator.name), operator.function))


def _put(state: _State, token: Token, step: Step) -> None:
    if len(state.steps) >= STEPS:
        raise ExpressionError(token.column, f"an expression may have {STEPS:,} numbers, variables and operators")
    state.steps.append(step)
    state.conditions.append(isinstance(step.value, Function) and step.value.compares)
