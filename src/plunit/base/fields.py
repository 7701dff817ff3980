"""Named values from users, checked against types with ranges: `Annotated[int, Range(1, 6)]`.

The types are those of a dataclass or of a function's parameters: int, float, bool, str, `Literal[...]`, dict and
`tuple[..., ...]`. A range limits numbers, each number of a tuple, or the length of a string.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from inspect import signature
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from plunit.base.errors import UserError
from plunit.base.ranges import Range

Built = TypeVar("Built")


def construct(what: str, function: Callable[..., Built], given: Any) -> Built:
    """Return function(**given); an unknown field, or a missing one that has no default, raises UserError."""
    if not isinstance(given, dict):
        raise UserError(f"{what} must be an object, got {type(given).__name__}")
    parameters = signature(function).parameters
    if unknown := sorted(str(name)[:40] for name in given if name not in parameters):
        raise UserError(f"unknown field {unknown[0]!r} of {what}; valid fields: {', '.join(parameters) or 'none'}")
    if missing := [name for name, one in parameters.items() if one.default is one.empty and name not in given]:
        raise UserError(f"{what} needs a field {missing[0]!r}")
    hints = get_type_hints(function, include_extras=True)
    return function(**{name: check_value(name, value, hints.get(name, Any)) for name, value in given.items()})


def match_name(what: str, name: Any, names: Collection[str]) -> str:
    """Return a name that is one of `names`, or raise UserError."""
    if name not in tuple(names):  # a list from a JSON file is not hashable
        near = difflib.get_close_matches(str(name)[:80], names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"unknown {what} {str(name)[:80]!r}; choose one of {', '.join(names) or 'none'}{hint}")
    return str(name)


def check_value(name: str, value: Any, hint: Any) -> Any:
    """Return a value of this type, with lists as tuples and integers as floats where needed; or raise UserError.

    >>> check_value("widths", [1, 8], tuple[int, ...]), check_value("lr", 1, Annotated[float, Range(0, 1)])
    ((1, 8), 1.0)
    """
    kind, limits = get_args(hint) if get_origin(hint) is Annotated else (hint, Range())
    if get_origin(kind) is tuple:
        item, values = get_args(kind)[0], value if isinstance(value, list | tuple) else ()
        if not values or not all(_is(one, item, limits) for one in values):
            raise UserError(f"{name} must be {describe_type(hint)}, got {_short(value)}")
        return tuple(float(one) if item is float else one for one in values)
    if not _is(value, kind, limits):
        got = f"{len(value):,} characters" if isinstance(value, str) and kind is str else _short(value)
        raise UserError(f"{name} must be {describe_type(hint)}, got {got}")
    if isinstance(value, str) and (half := re.search("[\ud800-\udfff]", value)):  # cannot be encoded
        raise UserError(f"{name} contains {half[0]!r}, which is not UTF-8; remove it")
    return float(value) if kind is float else value


def parse_value(name: str, text: str, hint: Any) -> Any:
    """Return the value that a text holds, with commas between the numbers of a tuple, or raise UserError.

    >>> parse_value("widths", "1, 8, 1", tuple[int, ...]), parse_value("alpha", "1e-3", float)
    ((1, 8, 1), 0.001)
    """
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(kind) is not tuple:
        return check_value(name, _convert(text.strip(), kind), hint)
    return check_value(name, [_convert(part.strip(), get_args(kind)[0]) for part in text.split(",")], hint)


def describe_type(hint: Any) -> str:
    """Describe the values that a type with a range allows.

    >>> describe_type(Annotated[float, Range(0, 1)]), describe_type(tuple[int, ...]), describe_type(Literal["a", "b"])
    ('a number (0 to 1)', 'a list of whole numbers', 'a or b')
    """
    if get_origin(hint) is Annotated:
        kind, limits = get_args(hint)
        return f"a string of at most {limits.high:,} characters" if kind is str else f"{describe_type(kind)} ({limits})"
    if get_origin(hint) is tuple:
        return "a list of " + {int: "whole numbers", float: "numbers"}.get(get_args(hint)[0], "names")
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
    return words.get(hint, "an object")


def _is(value: Any, kind: Any, limits: Range) -> bool:
    """Whether a value has a type and is in the range; NaN is in no range."""
    if kind is Any:
        return True
    if get_origin(kind) is Literal:
        return value in list(get_args(kind))
    if kind in (int, float):
        number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        return number and limits.holds(value)
    return isinstance(value, get_origin(kind) or kind) and (kind is not str or limits.holds(len(value)))


def _convert(text: str, kind: Any) -> Any:
    """Return the text as a number, or the text itself if it is not a number or `kind` is another type."""
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def _short(value: Any) -> str:
    return (",".join(map(str, value)) if isinstance(value, list | tuple) else repr(value))[:80]
