"""Networks from .nnet files, the text format for ReLU networks of Reluplex and Marabou.

Comments after //, then lines of comma-separated numbers: layers, inputs, outputs, largest layer; the size of each
layer; a flag; smallest values and largest values of the inputs; means and ranges of the inputs, each followed by that
of all outputs; then for each layer the rows of its weights and its biases one by one. Hidden layers are ReLU. Older
files have a single 0 instead of the values of the inputs, or of means and ranges, omit the lines of means and ranges,
or repeat the last size.

The programs of the format clip each input to its smallest and largest value before they normalise it. So the network
begins with a layer that clips, if the file has these values. Proofs leave this layer out where it changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Content, Importer, Model, build
from plunit.pieces.networks import LayerLike


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the numbers of each line that is neither empty nor a comment."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("//"):
            yield line.strip().rstrip(",").split(",")


def _recognises(content: Content) -> bool:
    first = list(itertools.islice(_rows(content.text()), 2))
    if len(first) < 2 or len(first[0]) != 4:
        return False
    return all(word.strip().isdecimal() for row in first for word in row)


def _load(path: Path) -> Model:
    text = path.read_text(encoding="utf-8-sig")
    rows, lines = _rows(text), [line for line in map(str.strip, text.splitlines()) if line and line[:2] != "//"]
    if lines[0].endswith(",") and not lines[-1].endswith(","):
        raise ValueError("the file ends within a line: no comma follows the last number; write the file again")
    count, inputs, outputs, _ = (int(word) for word in next(rows))
    sizes = [int(word) for word in next(rows)]
    if sizes[count + 1 :] == [outputs]:
        sizes.pop()
    if (len(sizes), sizes[0], sizes[-1]) != (count + 1, inputs, outputs):
        raise ValueError(f"{count} layers from {inputs} inputs to {outputs} outputs do not fit the sizes {sizes}")
    next(rows, None)
    box = np.array([_header(rows, inputs, f"the {word} values", np.nan) for word in ("smallest", "largest")]).T
    if inputs == 1 and not box.any():  # for one input, the single zeros of a file without these values
        box[:] = np.nan
    if (box[:, 0] > box[:, 1]).any():
        raise ValueError(f"the smallest values {box[:, 0].tolist()} must not exceed the largest, {box[:, 1].tolist()}")
    mean, spread = np.zeros(inputs + 1), np.ones(inputs + 1)
    if len(lines) != 5 + 2 * sum(sizes[1:]):
        mean, spread = _header(rows, inputs + 1, "the means", 0.0), _header(rows, inputs + 1, "the ranges", 1.0)
    if not spread.all():
        raise ValueError("a range must not be 0, because inputs are divided by it")
    has_box = not np.isnan(box).any()
    layers: list[LayerLike] = [_clip(*box.T)] if has_box else []
    for i, (before, units) in enumerate(itertools.pairwise(sizes)):
        weight = np.array([_numbers(rows, before, f"row {row} of layer {i}") for row in range(units)])
        bias = np.array([_numbers(rows, 1, f"bias {row} of layer {i}")[0] for row in range(units)])
        if i == 0:
            weight, bias = weight / spread[:-1], bias - weight @ (mean[:-1] / spread[:-1])
        if i == count - 1:
            weight, bias = spread[-1] * weight, spread[-1] * bias + mean[-1]
        layers += [(weight, bias), activation.relu()]
    if next(rows, None) is not None:
        raise ValueError(f"the file must end after the biases of the last layer, layer {count - 1}, but continues")
    rounded = bool(mean.any() or (spread != 1).any())
    return Model(build(layers[:-1]), rounded=rounded, box=box if has_box else None)


def _clip(low: Floats, high: Floats) -> Activation:
    """Return clip(x, low, high), a constant where both ends are equal."""
    return activation.piecewise([low, high], [0.0, 1.0, 0.0], np.clip(0.0, low, high))


def _header(rows: Iterator[list[str]], count: int, what: str, default: float) -> Floats:
    """Return the numbers of the next line, or the default if it is a single 0."""
    row = next(rows, [])
    if count > 1 and [word.strip() for word in row] == ["0"]:
        return np.full(count, default)
    return _numbers(iter([row]), count, what)


def _numbers(rows: Iterator[list[str]], count: int, what: str) -> Floats:
    row = next(rows, [])
    if len(row) != count:
        raise ValueError(f"{what} must have {count} numbers, got {len(row)}")
    if any("_" in word for word in row):
        raise ValueError(f"{what} must be numbers, got {next(word for word in row if '_' in word)!r}")
    numbers = np.array([float(word) for word in row])
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what} must be finite, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers


IMPORTER = Importer(
    "a .nnet file",
    _recognises,
    _load,
    "see the docstring of plunit.pieces.formats.nnet_text for the rules of the format",
)
