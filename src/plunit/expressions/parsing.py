"""text -> Expression: Python's own parser reads the text after its words are checked; nothing is ever executed.

    condition   number  < <= > >= == !=  number         (not chained)
    number      number + - * / ** number  |  + - number  |  (number)  |  name(number, ...)  |  variable  |  constant

Operators group as in Python: -x**2 is -(x**2), and 2**-x**2 is 2**(-(x**2)). First the number of words, the open
parentheses and the order of values and operators are checked from left to right. So `ast.parse` gets neither an error
nor a text that could exhaust a stack of 512 KiB or more. Its tree is walked without recursion.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from plunit.base.errors import quote
from plunit.expressions.expression import (
    CONSTANTS,
    FUNCTIONS,
    NAMES,
    OPERATORS,
    OTHER_NAMES,
    SIGNS,
    Expression,
    ExpressionError,
    Function,
    Step,
)

LENGTH = 10_000
"""The maximum length of a text in characters."""

_DEPTH = 100
"""The maximum number of parentheses that may be open at once."""

_STEPS = 2_000
"""The maximum number of numbers, variables, operators and calls."""

_WORD = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<call>[A-Za-z_][A-Za-z0-9_]*[ \t\r\n]*\()
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol>\*\*|//|<=|>=|==|!=|[-+*/^()<>,])""",
    re.VERBOSE,
)
"""Matches the next word of a text, or the space before it."""

_BOTH = "write where(a, where(b, 1, 0), 0) for a and b, where(a, 1, where(b, 1, 0)) for a or b"
_REMEDIES = {
    "//": "write floor(a / b)",
    "%": "write mod(a, b)",
    "=": "write == to compare",
    **dict.fromkeys(("&", "and", "or"), _BOTH),
    "|": "for the absolute value write abs(x), for a or b where(a, 1, where(b, 1, 0))",
    "!": "write != for not equal; swap a and b in where(condition, a, b) for not",
    "not": "swap a and b in where(condition, a, b)",
    "if": "write where(condition, a, b)",
    **dict.fromkeys("[]{}", "write ( and )"),
    **dict.fromkeys("\u00d7·", "write *"),
    **dict.fromkeys("\u2212\u2013", "write -"),
    "÷": "write /",
    "²": "write **2",
    "³": "write **3",
    "π": "write pi",
    "√": "write sqrt(x)",
    "relu(": "write max(x, 0)",
    "sigmoid(": "write 1 / (1 + exp(-x))",
    "pow(": "write a**b",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}
"""The remedy for a word that other languages have."""

_EQUATION = re.compile(r"\s*[A-Za-z_]\w*\s*(?:\([\w\s,]*\)\s*)?(?P<sign>=)(?!=)(?P<right>.*)", re.DOTALL)
"""Matches a text such as y = x**2 or f(x) = x**2."""

_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_SYMBOLS: dict[type[ast.AST], str] = dict(zip(_BINARY, OPERATORS, strict=True))


class _Word(NamedTuple):
    """A word of the text. The kind is space, number, name, call, symbol or end; columns start at 1; ^ becomes **."""

    kind: str
    text: str
    column: int
    typed: bool = True

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else quote(self.text if self.typed else "^")


def parse(text: str) -> Expression:
    """Return the function that a text describes, e.g. "where(x < 0, exp(x), 1 + x)".

    Numbers, variables, + - * / ** ( ), comparisons, `where`, the constants pi and e, and NumPy's functions in
    `FUNCTIONS`. Raises ExpressionError, a ValueError, with the column and the remedy.

    A * may be left out, and ^ means **; the result's `text` shows how the text was understood.

    >>> parse("-x**2 + a * x")(3, 1).tolist()
    -6.0
    >>> parse("2x^2 - x(x + 1)sin(3x)").text
    '2*x**2 - x*(x + 1)*sin(3*x)'
    >>> parse("x % 2")
    Traceback (most recent call last):
    plunit.expressions.expression.ExpressionError: column 3: '%' is not allowed in an expression; write mod(a, b)
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression must be a string, got {type(text).__name__}")
    written, source, columns = _check(text)
    try:
        # with the parenthesis, an index into the source is a column of the text, counted from 1
        tree = ast.parse(f"({source})", mode="eval").body
    except (RecursionError, MemoryError):
        raise ExpressionError(1, f"{quote(text)} is nested too deeply; use fewer signs and powers") from None
    if isinstance(tree, ast.Compare):
        raise ExpressionError(1, f"{quote(text)} is a comparison, not a number; write where(condition, 1, 0)")
    nodes, todo = [], [tree]
    while todo:
        nodes.append(todo.pop())
        todo += _parts(nodes[-1])
    names: dict[str, int] = {}
    try:
        steps = tuple(_step(written, node, names) for node in reversed(nodes))  # parts come before their node
    except ExpressionError as error:
        raise ExpressionError(columns[error.column - 1], error.problem) from None
    return Expression(written, tuple(names), steps)


def _check(text: str) -> tuple[str, str, list[int]]:
    """Return the text with each omitted *, the same for Python's parser, and the column of each character and the end.

    Raise ExpressionError unless values and operators alternate, parentheses match, and there are not too many of them.
    """
    written, source, columns, opened = "", "", list[int](), list[_Word]()
    count, value_next = 0, True
    for word in _words(text):
        if not value_next and _is_factor(word):
            times = "* " if written[-1].isspace() else "*"
            written, source, value_next, count = written + times, source + times, True, count + 1
            columns += [word.column] * len(times)
        written += word.text
        source += _as_python(word)
        columns += range(word.column, word.column + len(word.text)) if word.typed else [word.column] * len(word.text)
        if word.kind == "space":
            continue
        count += word.text not in ("(", ")", ",", "")
        if count > _STEPS:
            raise ExpressionError(word.column, f"more than {_STEPS:,} numbers, variables and operators; use fewer")
        if not value_next:
            value_next = _read_after_value(word, opened)
        elif word.kind == "call" or word.text == "(":
            _check_opening(word, len(opened))
            opened.append(word)
        elif word.kind in ("number", "name"):
            _check_value(word)
            value_next = False
        elif word.text not in SIGNS:
            wanted = "a number, a variable, a function or ( is needed here"
            remedy = "; " + _REMEDIES[word.text] if word.text in _REMEDIES else ""
            raise ExpressionError(word.column, f"found {word}, but {wanted}{remedy}")
    return written, source, [*columns, len(text) + 1]


def _is_factor(word: _Word) -> bool:
    """Whether a value is multiplied by the word after it, as in 2x and 3(x + 1)."""
    return word.text == "(" or (word.kind in ("name", "call") and not keyword.iskeyword(word.text.rstrip("( \t\r\n")))


def _words(text: str) -> Iterator[_Word]:
    """Yield the words of a text, and last the end."""
    if len(text) > LENGTH:
        raise ExpressionError(LENGTH + 1, f"the text has {len(text):,} characters; the limit is {LENGTH:,}")
    if (equation := _EQUATION.match(text)) and (right := equation["right"].strip()):
        problem = f"'=' is not allowed in an expression; write only the right-hand side: {quote(right)}"
        raise ExpressionError(equation.start("sign") + 1, problem)
    # a name before a parenthesis is a factor if it is a constant, or a variable elsewhere
    factors = {word[0] for word in _WORD.finditer(text) if word.lastgroup == "name"} | {*CONSTANTS}
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            remedy = _REMEDIES.get(text[at], "use only numbers, ASCII names, + - * / ** ( ) , and < <= > >= == !=")
            raise ExpressionError(at + 1, f"{quote(text[at])} is not allowed in an expression; {remedy}")
        kind, word = str(found.lastgroup), found.group()
        if kind == "call" and (name := word[:-1].rstrip()) in factors and name not in NAMES:
            kind, word = "name", name
        yield _Word(kind, "**", at + 1, typed=False) if word == "^" else _Word(kind, word, at + 1)
        at += len(word)
    yield _Word("end", "", len(text) + 1)


def _as_python(word: _Word) -> str:
    """Return a word of the same length for Python's parser: here, keywords are variables, and 007 is a number."""
    if keyword.iskeyword(word.text):
        return "_" * len(word.text)
    zeros = len(word.text) - len(re.sub("^0+(?=[0-9])", "", word.text))
    return " " * zeros + re.sub(r"\s", " ", word.text[zeros:])


def _check_value(word: _Word) -> None:
    if word.kind == "number" and math.isinf(float(word.text)):
        raise ExpressionError(word.column, f"{word} is too large; numbers go up to 1.7e308")
    if word.text in NAMES:
        raise ExpressionError(word.column, f"{word} is a function; write {_usage(word.text)}")
    if word.text.lower() in ("inf", "infinity", "nan"):
        raise ExpressionError(word.column, f"{word} is not finite and cannot be a variable; choose another name")
    if word.text in _REMEDIES:
        raise ExpressionError(word.column, f"{word} cannot be a variable; {_REMEDIES[word.text]}")


def _check_opening(word: _Word, depth: int) -> None:
    if depth >= _DEPTH:
        raise ExpressionError(word.column, f"more than {_DEPTH} parentheses are open; use fewer")
    name = word.text[:-1].strip()
    if name and name not in NAMES:
        raise ExpressionError(
            word.column, f"unknown function {quote(name)}; {_REMEDIES.get(f'{name}(') or _guess(name)}"
        )


def _guess(name: str) -> str:
    """Return a question with up to three similar functions, first those that begin the name, or the list of all.

    >>> _guess("cosinus")
    'did you mean cos, arcsin or sin?'
    """
    begun = [one for one in NAMES if name.startswith(one) or (len(name) > 1 and one.startswith(name))]
    close = get_close_matches(name[:30], NAMES, n=3, cutoff=0.5)
    near = list(dict.fromkeys([*sorted(begun, key=len, reverse=True), *close]))[:3]
    if not near:
        return f"the functions are {', '.join(NAMES)}"
    return f"did you mean {', '.join(near[:-1])}{' or ' * (len(near) > 1)}{near[-1]}?"


def _read_after_value(word: _Word, opened: list[_Word]) -> bool:
    """Check the word after a value, and close a parenthesis if it does; return whether a value must follow."""
    if word.text in OPERATORS:
        return True
    if word.kind == "end":
        if opened:
            column = opened[-1].column + len(opened[-1].text) - 1
            raise ExpressionError(column, "a parenthesis is opened here and never closed; add )")
    elif word.text == ")":
        if not opened:
            raise ExpressionError(word.column, "')' closes no parenthesis; leave it out")
        opened.pop()
    elif word.text != ",":
        remedy = _REMEDIES.get(word.text.rstrip("( \t\r\n"), "write * to multiply")
        raise ExpressionError(word.column, f"found {word}, but an operator or the end is needed here; {remedy}")
    elif not opened or opened[-1].kind != "call":
        hint = "; in numbers, write ." if opened else ""
        raise ExpressionError(word.column, f"',' is allowed only between arguments{hint}")
    return word.text == ","


def _usage(name: str) -> str:
    return f"{name}({', '.join(FUNCTIONS[OTHER_NAMES.get(name, name)].arguments)})"


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the operands of a node."""
    inner = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return [part for part in inner if isinstance(part, ast.expr)]


def _step(text: str, node: ast.expr, names: dict[str, int]) -> Step:
    match node:
        case ast.UnaryOp():
            sign = text[node.col_offset - 1]
            return _call(node, "sign " + sign, SIGNS[sign])
        case ast.BinOp(op=operator) | ast.Compare(ops=[operator]):
            return _call(node, _SYMBOLS[type(operator)], OPERATORS[_SYMBOLS[type(operator)]])
        case ast.Compare():
            problem = "a comparison has two sides; write where(a < b, where(b < c, 1, 0), 0) for a < b < c"
            raise ExpressionError(node.comparators[1].col_offset, problem)
        case ast.Call(func=ast.Name(id=written)):
            name = OTHER_NAMES.get(written, written)
            count, wanted = len(node.args), len(FUNCTIONS[name].arguments)
            if count != wanted:
                problem = f"{written} needs {wanted} arguments, got {count}: {_usage(written)}"
                raise ExpressionError(int(node.end_col_offset or 0) - 1, problem)
            return _call(node, name, FUNCTIONS[name])
    written = text[node.col_offset - 1 : int(node.end_col_offset or 0) - 1]
    if isinstance(node, ast.Name) and written not in CONSTANTS:
        return Step("input", names.setdefault(written, len(names)))
    return Step("number", CONSTANTS[written] if isinstance(node, ast.Name) else float(written))


def _call(node: ast.expr, name: str, function: Function) -> Step:
    """Return the step of a function; its argument "condition" must be a comparison, and no other argument may be."""
    for argument, part in zip(function.arguments, _parts(node), strict=True):
        if isinstance(part, ast.Compare) and argument != "condition":
            label = name.removeprefix("sign ")
            problem = f"{label!r} needs numbers, but this is a comparison; write where(a < b, 1, 0) instead"
            raise ExpressionError(part.col_offset, problem)
        if argument == "condition" and not isinstance(part, ast.Compare):
            problem = "where needs a comparison as its first argument, e.g. where(x < 0, a, b)"
            raise ExpressionError(part.col_offset, problem)
    return Step(name, function)
