"""Operators rewritten as simpler ones: pooling, and the linear models of scikit-learn in ai.onnx.ml.

A maximum over windows is pairwise (`pair_maxima`), an average is a convolution and a division. The reference of onnx
evaluates the simpler operators, not the original one, because its MaxPool is wrong for many paddings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.formats.onnx_graphs.operators import attributes, full_name, pads_of
from plunit.pieces.formats.pooling import Slide, find_windows, pair_maxima
from plunit.pieces.graphs import check_bytes


@dataclass(frozen=True)
class Lowering:
    """The simpler nodes that replace one node, and their arrays by name, in the order of creation."""

    node: Any
    shape: tuple[int, ...]
    nodes: list[Any]
    arrays: dict[str, Any]

    def array(self, value: Any) -> str:
        """Add an array, and return its name."""
        name = f"{self.node.output[0]} array {len(self.arrays)}"
        self.arrays[name] = value
        return name

    def add(self, kind: str, *inputs: str, output: str = "", **given: Any) -> str:
        """Add a node, and return the name of its output."""
        from onnx.helper import make_node

        output = output or f"{self.node.output[0]} step {len(self.nodes)}"
        self.nodes.append(make_node(kind, inputs, [output], **given))
        return output


def lower(node: Any, shape: tuple[int, ...]) -> Lowering:
    """Return the nodes that replace a node of `LOWERED` whose first input has this shape."""
    found = Lowering(node, shape, [], {})
    LOWERED[full_name(node)](found)
    return found


def _slides(low: Lowering, given: Mapping[str, Any]) -> tuple[list[Slide], list[int]]:
    """Return how the windows of a pool slide along each axis, and the padding after each axis."""
    sizes = low.shape[2:]
    axes = len(sizes)
    kernel = list(given.get("kernel_shape", ()))
    if not axes or len(kernel) != axes:
        raise ValueError(f"a kernel of shape {kernel} does not fit an input of shape {list(low.shape)}")
    strides, gaps = (list(given.get(name, [1] * axes)) for name in ("strides", "dilations"))
    reach = [(size - 1) * gap + 1 for size, gap in zip(kernel, gaps, strict=True)]
    automatic = given.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    if automatic and (reach != kernel or any(step > size for step, size in zip(strides, kernel, strict=True))):
        rule = "runtimes disagree on auto_pad with dilations, and with strides larger than the kernel"
        raise ValueError(f"{rule}; write the padding as pads")
    pads = pads_of(given, sizes, reach)
    slides, after = [], []
    for i, size in enumerate(sizes):
        before, end = pads[i], pads[axes + i]
        room = size + before + end - reach[i]
        if min(kernel[i], strides[i], gaps[i]) < 1 or min(before, end) < 0 or room < 0:
            raise ValueError(f"a window of {kernel} does not fit an input of shape {list(low.shape)}")
        count = room // strides[i] + 1
        # one more window if it begins before the padding at the end
        rest = given.get("ceil_mode", 0) and not automatic and room % strides[i] and count * strides[i] < size + before
        slides.append(Slide(count + bool(rest), kernel[i], strides[i], before, gaps[i]))
        after.append(end)
    windows = math.prod(low.shape[:2]) * math.prod(slide.count for slide in slides)
    check_bytes("the array of all windows", 8 * windows * math.prod(kernel))
    return slides, after


def _max_pool(low: Lowering) -> None:
    slides, _ = _slides(low, attributes(low.node))
    _add_maxima(low, slides)


def _global_max_pool(low: Lowering) -> None:
    _add_maxima(low, [Slide(1, size) for size in low.shape[2:]])


def _add_maxima(low: Lowering, slides: Sequence[Slide]) -> None:
    """Add the maxima of windows, in rounds of pairs."""
    after = (*low.shape[:2], *(slide.count for slide in slides))
    rounds, last = pair_maxima(find_windows(low.shape, slides))
    name = low.add("Reshape", low.node.input[0], low.array(np.array([-1])))
    for pairs in rounds:
        several = pairs[:, 1] >= 0
        one, other = (low.add("Gather", name, low.array(pairs[several, i])) for i in range(2))
        # Max carries its last input past the ReLU; there are fewer first than second numbers in pairs
        greater = low.add("Max", other, one)
        if several.all():
            name = greater
            continue
        single = low.add("Gather", name, low.array(pairs[~several, 0]))
        place = np.argsort(np.argsort(~several, kind="stable"))
        name = low.add("Gather", low.add("Concat", greater, single, axis=0), low.array(place))
    chosen = low.add("Gather", name, low.array(last))
    low.add("Reshape", chosen, low.array(np.array(after)), output=low.node.output[0])


def _average_pool(low: Lowering) -> None:
    """Add the sums over windows, each divided by the number of taps that count."""
    given = attributes(low.node)
    slides, after = _slides(low, given)
    padded = bool(given.get("count_include_pad", 0))
    counts: Floats = np.ones(())
    ends = []
    for size, slide, end in zip(low.shape[2:], slides, after, strict=True):
        places = slide.places
        first, last = (-slide.padding, size + end) if padded else (0, size)
        counts = np.multiply.outer(counts, ((places >= first) & (places < last)).sum(axis=1))
        # a window may end after the padding
        ends.append(max(end, int(places.max()) + 1 - size))
    if not counts.all():
        raise ValueError("a window holds only padding, which has no average; use less padding")
    channels = low.shape[1]
    sums = low.add(
        "Conv",
        low.node.input[0],
        low.array(np.ones((channels, 1, *(slide.kernel for slide in slides)))),
        group=channels,
        pads=[*(slide.padding for slide in slides), *ends],
        strides=[slide.stride for slide in slides],
        dilations=[slide.dilation for slide in slides],
    )
    low.add("Div", sums, low.array(counts), output=low.node.output[0])


def _floats(given: Mapping[str, Any], name: str) -> Floats:
    return np.asarray(given.get(name, ()), dtype=np.float64)


def _scaler(low: Lowering) -> None:
    """(x - offset) scale, each with one number or with one for each feature."""
    given = attributes(low.node)
    name = low.node.input[0]
    steps = [("Sub", _floats(given, "offset")), ("Mul", _floats(given, "scale"))]
    for kind, array in steps:
        if len(array) not in (1, low.shape[-1]):
            raise ValueError(f"{len(array)} numbers do not fit {low.shape[-1]} features")
        name = low.add(kind, name, low.array(array))
    low.add("Identity", name, output=low.node.output[0])


def _linear_regressor(low: Lowering) -> None:
    _add_scores(low, attributes(low.node).get("targets", 1), low.node.output[0])


def _linear_classifier(low: Lowering) -> None:
    """Add the scores, the second output; runtimes disagree on a single score for two classes."""
    given = attributes(low.node)
    classes = max(len(given.get(name, ())) for name in ("classlabels_ints", "classlabels_strings"))
    _add_scores(low, classes, low.node.output[1])


def _add_scores(low: Lowering, rows: int, output: str) -> None:
    """Add coefficients x + intercepts, with `rows` rows of coefficients."""
    given, features = attributes(low.node), low.shape[-1]
    transform = given.get("post_transform", b"NONE").decode()
    if transform != "NONE":
        raise ValueError(
            f"post_transform {transform} turns scores into probabilities, which is not piecewise-linear; export the "
            "scores themselves, or give the fitted model to plunit.pieces.from_sklearn"
        )
    weight, bias = _floats(given, "coefficients"), _floats(given, "intercepts")
    if len(weight) != rows * features or len(bias) not in (0, rows):
        raise ValueError(
            f"{features} features and {rows} outputs need {rows * features} coefficients and {rows} intercepts, got "
            f"{len(weight)} and {len(bias)}"
        )
    product = low.add("MatMul", low.node.input[0], low.array(weight.reshape(rows, features).T))
    low.add("Add", product, low.array(bias if len(bias) else np.zeros(rows)), output=output)


LOWERED: dict[str, Callable[[Lowering], None]] = {
    "AveragePool": _average_pool,
    "GlobalMaxPool": _global_max_pool,
    "MaxPool": _max_pool,
    "ai.onnx.ml.LinearClassifier": _linear_classifier,
    "ai.onnx.ml.LinearRegressor": _linear_regressor,
    "ai.onnx.ml.Scaler": _scaler,
}
