"""Changes of a spec: `lr=0.003` as text or as stored, checked against the types and ranges of the spec's fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, get_type_hints

from plunit.base.errors import UserError
from plunit.base.fields import checked, known, parsed

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
            raise UserError(f"a setting must be field=value, such as lr=0.003, got {text!r}")
        changes[name] = parsed(name, value, _hint(spec, name))
    return changes


def check(spec: Any, stored: Changes) -> Changes:
    """Return changes that were read from a file, lists as tuples; raise UserError unless all are valid."""
    return {name: checked(name, value, _hint(spec, name)) for name, value in stored.items()}


def assignments(changes: Changes) -> list[str]:
    """Return the texts that `parse` reads.

    >>> assignments({"widths": (1, 8, 1), "lr": 0.003})
    ['widths=1,8,1', 'lr=0.003']
    """
    return [f"{name}={_text(value, ',')}" for name, value in changes.items()]


def texts(changes: Changes) -> dict[str, str]:
    """Return the changes as texts, sorted by field, for names of files and titles.

    >>> texts({"widths": (1, 8, 1), "lr": 0.003})
    {'lr': '0.003', 'widths': '1x8x1'}
    """
    return {name: _text(value, "x") for name, value in sorted(changes.items())}


def changed(spec: Any, changes: Changes) -> Any:
    """Return a spec with other values in some fields; raise UserError if they do not go together."""
    own = {name: value for name, value in changes.items() if "." not in name}
    for name in {name.partition(".")[0] for name in changes if "." in name}:
        inner = {key.partition(".")[2]: value for key, value in changes.items() if key.startswith(f"{name}.")}
        own[name] = changed(getattr(spec, name), inner)
    try:
        return dataclasses.replace(spec, **own)
    except ValueError as error:
        raise UserError(str(error)) from None


def _hint(spec: Any, name: str) -> Any:
    """Return the type of a field, with its range."""
    hints = get_type_hints(type(spec), include_extras=True)
    inner = {field for field in hints if dataclasses.is_dataclass(getattr(spec, field))}
    head, _, rest = name.partition(".")
    if rest and head in inner:
        return _hint(getattr(spec, head), rest)
    known("field", name, [f"{field}.FIELD" if field in inner else field for field in hints])
    return hints[name]


def _text(value: Any, between: str) -> str:
    return between.join(map(str, value)) if isinstance(value, tuple) else str(value)
