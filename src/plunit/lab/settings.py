"""Changes of a spec from the command line, --set field=value, checked against the type and range of the field."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from plunit.base.errors import UserError
from plunit.base.ranges import Range

Changes = dict[str, Any]
"""Field, or field.field of a spec within a spec, to its value."""


def parse(spec: Any, assignments: Iterable[str]) -> Changes:
    """Return the changes that assignments such as "lr=0.003" or "widths=1,8,1" ask for.

    >>> from plunit.lab.experiment import catalogue
    >>> parse(catalogue()["sine"].spec, ["lr=0.003", "widths=1,8,1"])
    {'lr': 0.003, 'widths': (1, 8, 1)}
    """
    changes: Changes = {}
    for text in assignments:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise UserError(f"--set takes field=value, such as --set lr=0.003, got {text!r}")
        hint = _hint(spec, name)
        changes[name] = _value(name, [part.strip() for part in value.split(",")] if _is_tuple(hint) else [value], hint)
    return changes


def check(spec: Any, changes: Changes) -> None:
    """Raise UserError unless each value, read from a file, is one that `parse` could have returned."""
    for name, value in changes.items():
        parts = [str(part) for part in value] if isinstance(value, tuple) else [str(value)]
        if repr(_value(name, parts, _hint(spec, name))) != repr(value):
            raise UserError(f"{name} must be {_kind(_hint(spec, name))}, got {value!r}")


def texts(changes: Changes) -> dict[str, str]:
    """Return the changes as texts, sorted by field, for names of files and titles.

    >>> texts({"widths": (1, 8, 1), "lr": 0.003})
    {'lr': '0.003', 'widths': '1x8x1'}
    """
    return {
        name: "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
        for name, value in sorted(changes.items())
    }


def changed(spec: Any, changes: Changes) -> Any:
    """Return a spec with other values in some fields; raise UserError if they do not go together."""
    own = {name: value for name, value in changes.items() if "." not in name}
    for name in {name.partition(".")[0] for name in changes if "." in name}:
        inner = {key.partition(".")[2]: value for key, value in changes.items() if key.startswith(f"{name}.")}
        own[name] = changed(getattr(spec, name), inner)
    try:
        return dataclasses.replace(spec, **own)
    except ValueError as error:
        raise UserError(f"--set: {error}") from None


def _hint(spec: Any, name: str) -> Any:
    """Return the type of a field, with its range."""
    hints = get_type_hints(type(spec), include_extras=True)
    head, _, rest = name.partition(".")
    inner = getattr(spec, head) if head in hints else None
    if rest and dataclasses.is_dataclass(inner):
        return _hint(inner, rest)
    if name not in hints or dataclasses.is_dataclass(inner):
        known = [f"{n}.FIELD" if dataclasses.is_dataclass(getattr(spec, n)) else n for n in hints]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"unknown field {name[:80]!r}; the fields are {', '.join(known)}{hint}")
    return hints[name]


def _value(name: str, parts: list[str], hint: Any) -> Any:
    """Return the value that texts stand for; raise UserError if it is not of the type or not in the range."""
    kind, limits = get_args(hint) if get_origin(hint) is Annotated else (hint, Range())
    one = get_args(kind)[0] if _is_tuple(hint) else kind
    try:
        values = [_one(part, one) for part in parts]
    except (ValueError, OverflowError):
        values = []
    if not values or (one in (int, float) and not limits.holds(*values)):
        raise UserError(f"{name} must be {_kind(hint)}, got {','.join(parts)[:80]}")
    return tuple(values) if _is_tuple(hint) else values[0]


def _is_tuple(hint: Any) -> bool:
    return get_origin(get_args(hint)[0] if get_origin(hint) is Annotated else hint) is tuple


def _one(text: str, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return get_args(kind)[get_args(kind).index(text)]
    return kind(text)


def _kind(hint: Any) -> str:
    """Say what a field takes.

    >>> _kind(Annotated[float, Range(0, 1)]), _kind(tuple[int, ...]), _kind(Literal["a", "b"])
    ('a number (0 to 1)', 'whole numbers with commas between', 'a or b')
    """
    if get_origin(hint) is Annotated:
        return f"{_kind(get_args(hint)[0])} ({get_args(hint)[1]})"
    if get_origin(hint) is tuple:
        return {int: "whole numbers", float: "numbers"}.get(get_args(hint)[0], "names") + " with commas between"
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    return {int: "a whole number", float: "a number"}.get(hint, "a text")
