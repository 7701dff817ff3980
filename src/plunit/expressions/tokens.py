"""The words of an expression: numbers, names, calls `name(` and symbols, each with its column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LENGTH = 10_000
"""The longest text, in characters."""


class ExpressionError(ValueError):
    """The text is no expression; the message gives the column, what was found, the rule and the remedy in one line."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"column {column}: {problem}")


class Token(NamedTuple):
    """A word of the text; kind: number, name, call, symbol or end. Columns start at 1."""

    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else shown(self.text)


_WORD = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<call>[A-Za-z_][A-Za-z0-9_]*[ \t\r\n]*\()
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol>\*\*|//|<=|>=|==|!=|[-+*/()<>,])""",
    re.VERBOSE,
)

_BOTH = "write where(a, where(b, 1, 0), 0) for a and b, where(a, 1, where(b, 1, 0)) for a or b"

REMEDIES = {
    "^": "write ** for a power",
    "//": "write floor(a / b)",
    "%": "write mod(a, b)",
    "=": "write == to compare",
    "&": _BOTH,
    "|": _BOTH,
    "and": _BOTH,
    "or": _BOTH,
    "!": "write != for not equal; swap a and b in where(condition, a, b) for not",
    "not": "swap a and b in where(condition, a, b)",
    "if": "write where(condition, a, b)",
    "[": "write ( and )",
    "]": "write ( and )",
    "{": "write ( and )",
    "}": "write ( and )",
    "\u00d7": "write *",
    "·": "write *",
    "÷": "write /",
    "\u2212": "write -",
    "\u2013": "write -",
    "²": "write **2",
    "³": "write **3",
    "π": "write pi",
    "√": "write sqrt(x)",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}
"""What to write instead of a word that other languages have."""


def shown(text: str) -> str:
    """Return a text for a message: quoted, in one line, and not too long."""
    return repr(text if len(text) <= 30 else text[:30] + "...")


def words(text: str) -> Iterator[Token]:
    """Yield the words of a text, and the end as the last."""
    if len(text) > LENGTH:
        raise ExpressionError(LENGTH + 1, f"the text has {len(text):,} characters, at most {LENGTH:,} can be read")
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            remedy = REMEDIES.get(text[at], "only numbers, ASCII names, + - * / ** ( ) , and < <= > >= == != can")
            raise ExpressionError(at + 1, f"{shown(text[at])} cannot stand in an expression; {remedy}")
        kind = str(found.lastgroup)
        if kind != "space":
            yield Token(kind, found.group(), at + 1)
        at = found.end()
    yield Token("end", "", len(text) + 1)
