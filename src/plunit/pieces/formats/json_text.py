"""Curves as JSON: every number is written so that it reads back as the same bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.curve import Curve
from plunit.pieces.formats.checks import check_intercepts, reading

ARRAYS = {"knots": 1, "slopes": 2, "intercepts": 2, "values": 2, "tolerance": 2}
"""The arrays in a file, and their numbers of axes."""


def save_json(curve: Curve, path: str | Path) -> None:
    """Write knots, slopes, intercepts and values, with the tolerance of the slopes and the number of patterns."""
    content = {name: getattr(curve, name).tolist() for name in ARRAYS}
    Path(path).write_text(json.dumps({**content, "patterns": curve.patterns}, indent=1) + "\n")


def load_json(path: str | Path) -> Curve:
    """Read what `save_json` wrote; ValueError if the file is not a curve."""
    with reading(path, "save_json"):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}, not an object")
        missing = {*ARRAYS, "patterns"} - set(content)
        if missing:
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        arrays = {name: _array(name, content[name], axes) for name, axes in ARRAYS.items()}
        intercepts = arrays.pop("intercepts")
        curve = Curve(**arrays, patterns=content["patterns"])
        check_intercepts(curve, intercepts)
        return curve


def _array(name: str, content: Any, axes: int) -> Floats:
    """Return nested lists of numbers as an array."""
    try:
        array = np.array(content)
    except ValueError:
        array = np.array(None)
    if array.ndim != axes or array.dtype.kind not in "if":
        raise ValueError(f"{name} must be numbers in lists of equal lengths, nested {axes} deep")
    return array.astype(np.float64)
