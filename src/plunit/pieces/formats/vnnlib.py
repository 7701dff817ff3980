"""Properties from VNN-LIB files, the format of VNN-COMP: a formula over the inputs and outputs of networks.

A file declares its variables and asserts comparisons of linear terms, joined by and/or to any depth. All assertions
together describe what must not happen. They are brought into disjunctive normal form, and parts with the same inputs
become one `Case`. Numbers are read as float64, and added and multiplied exactly. For a proof, limits that float64 does
not hold are rounded outward, and open bounds of inputs count as closed; a witness must meet the exact comparisons.
Nothing recurses deeper than `DEPTH`, and sizes are checked before the form grows. Files of version 1.0 are about X_i
and Y_i of one network; files of version 2.0, which name networks and their variables, become a formula of the same kind
in `vnnlib_networks`.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.graphs import check_bytes
from plunit.pieces.proofs.properties import Case, Comparison, Condition, Property
from plunit.pieces.rounding import outward

BYTES = 2**26
"""Maximum size of a file, and of the content of a .gz file, in bytes: 64 MiB."""

DEPTH = 100
"""Maximum nesting of parentheses."""

CASES = 100_000
"""Maximum number of parts of the disjunctive normal form."""

COMPARISONS = 2_000_000
"""Maximum number of comparisons in all parts together."""

DIGITS = 2**13
"""Maximum number of bits of a product; a float64 needs up to 1,075, a sum of them up to 2,100."""

_TOKEN = re.compile(r"[()]|[^\s()]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_VARIABLE = re.compile(r"([XY])_(0|[1-9][0-9]{0,6})")
_COMMENT = re.compile(r";[^\r\n]*")
_GZIP = b"\x1f\x8b"


_Parts = list[tuple[Comparison, ...]]
"""A disjunction of conjunctions; outputs are numbered after the inputs."""


def load_vnnlib(path: str | Path) -> Property:
    """Return the property of a VNN-LIB 1.0 file (.vnnlib or .vnnlib.gz): no x may satisfy its formula.

    ValueError, in one line with the file, if the content is no such formula, if an input lacks a lower or an upper
    bound, if a comparison mixes inputs and outputs, or if `BYTES`, `DEPTH`, `CASES` or `COMPARISONS` is exceeded.
    """
    path = Path(path)
    with name_file(path, "1.0"):
        return parse_plain(read_plain(path))


@contextmanager
def name_file(path: Path, version: str) -> Iterator[None]:
    """Turn errors about a file into ValueError, in one line with the file."""
    try:
        yield
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a property in VNN-LIB {version}: {' '.join(str(error).split())}") from None


def read_plain(path: Path) -> str:
    """Return the text of a file, unpacked and without comments."""
    if path.exists() and not path.is_file():
        raise ValueError("the path is a folder, a device or a pipe; give a .vnnlib file")
    return plain_text(_text(path))


def is_newer(plain: str) -> bool:
    """Whether a text without comments declares VNN-LIB 2.0 or later."""
    return re.match(r"\s*\(\s*vnnlib-version", plain) is not None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    with gzip.open(path) if packed else path.open("rb") as file:
        content = file.read(BYTES + 1)
    if len(content) > BYTES:
        raise ValueError(f"the content has more than {BYTES:,} bytes, the limit; split its cases into several files")
    return bytes(content).decode("utf-8-sig")


def parse_property(text: str) -> Property:
    """Return the property of a text in VNN-LIB 1.0; ValueError if it is not one.

    >>> lines = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= 0 X_0)) (assert (<= X_0 1))"
    >>> len(parse_property(lines + "(assert (or (>= Y_0 3) (<= Y_0 -3)))").cases[0].conditions)
    2
    """
    return parse_plain(plain_text(text))


def parse_plain(plain: str) -> Property:
    """Return the property of a text in VNN-LIB 1.0 without comments."""
    names: dict[str, int] = {}
    asserted = []
    for command in _expressions(plain):
        word = command[0] if isinstance(command, list) and command else command
        if word == "assert" and len(command) == 2:
            asserted.append(command[1])
        elif word in ("declare-const", "declare-fun") and command[2:] in (["Real"], [[], "Real"]):
            name = command[1]
            if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
                raise ValueError(f"variables are X_0, X_1, ... and Y_0, Y_1, ..., got {_show(name)}")
            if name in names:
                raise ValueError(f"{name} is declared twice; declare each variable once")
            names[name] = len(names)
        else:
            raise ValueError(f"a line must be declare-const or assert, got {_show(command)}")
    inputs, outputs = (_count(names, letter) for letter in "XY")
    numbers = {name: int(name[2:]) + (inputs if name[0] == "Y" else 0) for name in names}
    return Formula(numbers, inputs, outputs).property(asserted)


def plain_text(text: str) -> str:
    """Return a text without comments; ValueError if it has more comparisons than all cases together may have."""
    plain = _COMMENT.sub("", text)
    _check(1, sum(plain.count(start) for start in ("(<", "(>", "(=")))
    return plain


def _count(names: dict[str, int], letter: str) -> int:
    """Return the number of variables of a letter; ValueError if there is none, or one is missing."""
    given = {name for name in names if name[0] == letter}
    if not given or (missing := {f"{letter}_{i}" for i in range(len(given))} - given):
        first = min(missing, key=lambda name: int(name[2:])) if given else f"{letter}_0"
        raise ValueError(f"{first} is not declared; declare {letter}_0, {letter}_1, ... without a gap, as Real")
    return len(given)


def _expressions(text: str) -> Iterator[Any]:
    """Yield the expressions of a text without comments, as nested lists of words."""
    stack: list[list[Any]] = []
    for token in map(re.Match[str].group, _TOKEN.finditer(text)):
        if token == "(":
            stack.append([])
            if len(stack) > DEPTH:
                raise ValueError(f"parentheses are nested deeper than {DEPTH}; write the formula flatter")
        elif token == ")":
            if not stack:
                raise ValueError("a parenthesis is closed that is not open")
            done = stack.pop()
            if not stack:
                yield done
            else:
                stack[-1].append(done)
        elif not stack:
            raise ValueError(f"a line must be declare-const or assert, got {_show(token)}")
        else:
            stack[-1].append(token)
    if stack:
        raise ValueError(f"{len(stack)} parentheses are not closed at the end; the file may be truncated")


def _show(expression: Any) -> str:
    """Return the start of an expression as text."""
    words: list[str] = []
    todo = [expression]
    while todo and len(words) < 12:
        part = todo.pop()
        if isinstance(part, list):
            todo += [")", *reversed(part), "("]
        else:
            words.append(part[:40])
    text = " ".join(words) + (" ..." if todo else "")
    return text.replace("( ", "(").replace(" )", ")")


class Formula:
    """Formulas over numbered variables, the inputs first, and their disjunctive normal form."""

    def __init__(self, numbers: dict[str, int], inputs: int, outputs: int) -> None:
        self.numbers, self.inputs, self.outputs = numbers, inputs, outputs

    def property(self, asserted: Sequence[Any]) -> Property:
        """Return the property that all assertions together describe."""
        parts = self._together([self._normal(expression) for expression in asserted])
        cases: dict[object, list[Case]] = {}
        for part in parts:
            if (case := self._case(part)) is not None:
                key = case.box.tobytes(), case.rows.tobytes(), case.limits.tobytes(), case.exact
                cases.setdefault(key, []).append(case)
        if not cases:
            return self._nothing()
        groups = ((same[0], tuple(one.conditions[0] for one in same)) for same in cases.values())
        return Property(tuple(replace(case, conditions=conditions) for case, conditions in groups))

    def _nothing(self) -> Property:
        """Return the property that contains no x: 0 <= -1."""
        condition = Condition(np.zeros((1, self.outputs)), np.zeros(1))
        return Property((Case(np.zeros((self.inputs, 2)), np.zeros((1, self.inputs)), -np.ones(1), (condition,)),))

    def _normal(self, expression: Any) -> _Parts:
        """Return the disjunctive normal form of an expression."""
        if not isinstance(expression, list) or not expression:
            raise ValueError(f"an assertion must be a comparison, `and` or `or`, got {_show(expression)}")
        word, inner = expression[0], expression[1:]
        if word == "and":
            return self._together([self._normal(part) for part in inner])
        if word == "or":
            found, size = list[tuple[Comparison, ...]](), 0
            for each in inner:
                found += (parts := self._normal(each))
                size += sum(map(len, parts))
                _check(len(found), size)
            return found
        return [self._compare(expression)]

    def _together(self, factors: list[_Parts]) -> _Parts:
        """Return the conjunction of disjunctions: each part of one with each part of the others."""
        shared = tuple(each for parts in factors if len(parts) == 1 for each in parts[0])
        found: _Parts = [()]
        for parts in (parts for parts in factors if len(parts) != 1):
            longest = max(map(len, found), default=0) + max(map(len, parts), default=0)
            _check(len(found) * len(parts), len(found) * len(parts) * longest)
            found = [(*one, *other) for one in found for other in parts]
        _check(len(found), len(found) * len(shared))
        return [(*shared, *part) for part in found]

    def _compare(self, expression: list[Any]) -> tuple[Comparison, ...]:
        if len(expression) != 3 or expression[0] not in ("<=", ">=", "<", ">", "="):
            raise ValueError(f"an assertion is `and`, `or`, or <=, >=, <, >, = of two terms, got {_show(expression)}")
        word, left, right = expression
        if word == "=":
            return (*self._compare(["<=", left, right]), *self._compare([">=", left, right]))
        if word[0] == ">":
            left, right = right, left
        factors = self._term(["-", left, right])
        limit = -factors.pop(-1, Fraction(0))
        terms = tuple((number, factor) for number, factor in sorted(factors.items()) if factor)
        if any(math.isinf(_rounded_up(number)) for number in (limit, *(factor for _, factor in terms))):
            raise ValueError(f"numbers are too large: {_show(expression)}")
        if not terms:
            raise ValueError(f"a comparison has no variable: {_show(expression)}; leave it out")
        if terms[0][0] < self.inputs <= terms[-1][0]:
            raise ValueError(
                f"a comparison has inputs and outputs: {_show(expression)}; compare inputs with inputs, and outputs "
                "with outputs"
            )
        if len(terms) == 1 and terms[0][0] < self.inputs:  # a bound of one input: x <= limit or -x <= limit
            ((number, factor),) = terms
            terms, limit = ((number, Fraction(1 if factor > 0 else -1)),), limit / abs(factor)
        if not all(_is_float(factor) for _, factor in terms):
            raise ValueError(
                f"the factors of a comparison are not float64 numbers once they are multiplied and added: "
                f"{_show(expression)}; write each factor as one number"
            )
        return (Comparison(terms, limit, strict=len(word) == 1),)

    def _term(self, term: Any) -> dict[int, Fraction]:
        """Return the factor of each variable in a term; number -1 has the constant."""
        if isinstance(term, str):
            if term in self.numbers:
                return {self.numbers[term]: Fraction(1)}
            if not _NUMBER.fullmatch(term):
                raise ValueError(f"{_show(term)} is neither a number nor a variable that is declared")
            if math.isinf(float(term)):
                raise ValueError(f"numbers are too large: {_show(term)}")
            return {-1: Fraction(float(term))}
        word, parts = (term[0], [self._term(part) for part in term[1:]]) if term else (None, [])
        if word == "-" and len(parts) == 1:
            return {number: -factor for number, factor in parts[0].items()}
        if word in ("+", "-") and parts:
            total = dict(parts[0])
            for part in parts[1:]:
                for number, factor in part.items():
                    total[number] = total.get(number, 0) + (factor if word == "+" else -factor)
            return total
        if word == "*" and parts:
            varying = [part for part in parts if not set(part) <= {-1}]
            if len(varying) > 1:
                raise ValueError(f"terms must be linear, but two variables are multiplied: {_show(term)}")
            scale = Fraction(1)
            for part in parts:
                scale = _product(scale, part.get(-1, Fraction(0)) if set(part) <= {-1} else Fraction(1))
            return {number: _product(scale, factor) for number, factor in (varying or [{-1: Fraction(1)}])[0].items()}
        raise ValueError(f"a term is a number, a variable, or +, - or * of terms, got {_show(term)}")

    def _case(self, part: tuple[Comparison, ...]) -> Case | None:
        """Return the case of a conjunction, with one condition on the outputs; None if its box is empty."""
        ends: dict[tuple[int, int], Comparison] = {}
        on_inputs, on_outputs = list[Comparison](), list[Comparison]()
        for each in part:
            (number, factor), *more = each.factors
            if number >= self.inputs:
                moved = tuple((number - self.inputs, factor) for number, factor in each.factors)
                on_outputs.append(replace(each, factors=moved))
            elif more:
                on_inputs.append(each)
            else:
                key = number, int(factor)
                ends[key] = min(ends.get(key, each), each, key=lambda one: (one.limit, not one.strict))
        box = self._box(ends)
        if box is None:
            return None
        strict = bool(on_outputs) and all(each.strict for each in on_outputs)
        condition = Condition(*_rows(on_outputs, self.outputs), strict, _inexact(on_outputs, strict=strict))
        exact = _inexact([*ends.values(), *on_inputs], strict=False)
        return Case(box, *_rows(on_inputs, self.inputs), (condition,), exact)

    def _box(self, ends: dict[tuple[int, int], Comparison]) -> Floats | None:
        """Return the box of bounds x <= limit, key (input, 1), and -x <= limit, key (input, -1); None if empty."""
        box = np.full((self.inputs, 2), np.inf)
        for (i, sign), each in ends.items():
            box[i, (sign + 1) // 2] = _rounded_up(each.limit)
        if not np.isfinite(box).all():
            i, side = (int(axis[0]) for axis in np.nonzero(~np.isfinite(box)))
            name = next(name for name, number in self.numbers.items() if number == i)
            raise ValueError(
                f"{name} has no {('lower', 'upper')[side]} bound in a case; bound every input from both sides"
            )
        for below, above in ((ends[i, -1], ends[i, 1]) for i in range(self.inputs)):
            width = above.limit + below.limit
            if width < 0 or (width == 0 and (above.strict or below.strict)):
                return None
        return np.stack([-box[:, 0], box[:, 1]], axis=1) + 0.0  # no bound is -0.0, so that equal boxes have equal bytes


def _product(one: Fraction, other: Fraction) -> Fraction:
    """Return the product; ValueError if it has more than `DIGITS` bits."""
    found = one * other
    if max(found.numerator.bit_length(), found.denominator.bit_length()) > DIGITS:
        raise ValueError(f"a product of numbers has more than {DIGITS:,} bits; write it as one number")
    return found


def _rounded_up(number: Fraction) -> float:
    """Return the smallest float64 that is not below a number, possibly infinite."""
    try:
        return float(number) if _is_float(number) else outward(number)[1]
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _is_float(number: Fraction) -> bool:
    """Whether float64 holds a number exactly; OverflowError if the number is too large."""
    return float(number).as_integer_ratio() == (number.numerator, number.denominator)


def _inexact(comparisons: list[Comparison], *, strict: bool) -> tuple[Comparison, ...]:
    """Return the comparisons that float64 rows, with < if strict and else with <=, do not state exactly."""
    return tuple(each for each in comparisons if each.strict != strict or not _is_float(each.limit))


def _rows(comparisons: list[Comparison], count: int) -> tuple[Floats, Floats]:
    """Return float64 rows and limits that every solution of the comparisons of `count` variables satisfies."""
    check_bytes(f"{len(comparisons):,} comparisons of {count:,} variables", 8 * len(comparisons) * count)
    rows = np.zeros((len(comparisons), count))
    for i, each in enumerate(comparisons):
        for number, factor in each.factors:
            rows[i, number] = float(factor)
    return rows, np.array([_rounded_up(each.limit) for each in comparisons], dtype=np.float64)


def _check(cases: int, comparisons: int) -> None:
    if cases > CASES or comparisons > COMPARISONS:
        raise ValueError(
            f"the formula has {cases:,} cases with {comparisons:,} comparisons; the limits are {CASES:,} and "
            f"{COMPARISONS:,}; split it into several files"
        )
