"""Frames for a page to draw, as a JSON object and one block of bytes.

`Painter` makes the frames of a session. Each has a `Panel` for each activation: all networks as an image, two of them
exactly, and statistics; `Cloud` is the image, which counts the networks that pass through each pixel.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from plunit.ensemble import MLP, forward
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import dead_units, exact, in_units
from plunit.ensemble.native_steps import VECTOR, values
from plunit.pieces import Ensemble as Exact
from plunit.pieces import counts, curves, polygon_counts, polygons
from plunit.play.live_training import LOOKED, Snapshot
from plunit.play.targets import LearningTask, Settings
from plunit.programs.libraries import why_not_native

BARS = 24  # of a histogram of losses
_DOTS = 1000  # maximum number of rows shown
SIZE = _WIDTH, _HEIGHT = 96, 80  # pixels of an image
QUANTILES = {"low": 0.05, "middle": 0.5, "high": 0.95}
_MOST = 120  # maximum number of points of a loss curve; then every second one is dropped
PIECES = 2000  # a network with more pieces is drawn without them
SAMPLE = (64, 8)  # networks whose pieces are counted, for one and for two inputs
_WORK = 700_000  # maximum number of products for one image; larger ensembles are renewed in parts


class Reply(NamedTuple):
    """An answer to a page: an object, and bytes that it points into."""

    content: dict[str, Any]
    payload: bytes = b""


def _append(payload: bytearray, array: Array) -> dict[str, int]:
    """Append an image or rows of numbers, each a multiple of four bytes long; return where they are."""
    size = {"height": len(array), "width": array.shape[1]} if array.dtype == np.uint8 else {"count": len(array)}
    place = {"offset": len(payload), **size}
    payload += array.tobytes()
    return place


class Painter:
    """Makes the frames of one session."""

    def __init__(self, task: LearningTask, settings: Settings, snapshots: list[Snapshot]) -> None:
        self._panels = [Panel(one.network, task, settings) for one in snapshots]
        self.frames = 0

    def paint(self, snapshots: list[Snapshot], numbers: bool = True) -> Reply:
        """Return a frame: with numbers and the exact lines of all activations, or with the lines of one, in turn."""
        self.frames += 1
        payload, panels = bytearray(), []
        bars = _bars([one.loss for one in snapshots]) if numbers else None
        for i, (panel, now) in enumerate(zip(self._panels, snapshots, strict=True)):
            painted, image, edges = panel.paint(now, numbers or i == self.frames % len(snapshots), numbers)
            painted["image"] = _append(payload, image)
            painted["edges"] = None if edges is None else _append(payload, edges)
            if bars is not None:
                counts = np.histogram(_logs(now.loss), bars)[0]
                painted["histogram"] = {"edges": bars.tolist(), "counts": counts.tolist()}
            panels.append(painted)
        return Reply({"frame": self.frames, "step": snapshots[0].step, "panels": panels}, bytes(payload))


def problem_of(task: LearningTask, settings: Settings, notes: list[str]) -> Reply:
    """Return the part of a task that a page shows."""
    view, payload = view_of(task).tolist(), bytearray()
    content: dict[str, Any] = {
        "title": task.title,
        "inputs": task.inputs,
        "widths": task.widths(settings),
        "view": {"x": view[0], "y": view[1]},
        "range": [task.y.min(), task.y.max()],
        "notes": [*task.notes, *notes],
    }
    if task.inputs == 2 and task.function:
        content["image"] = _append(payload, surface_bytes(task, task.function(*pixels(task.box).T)))
    elif settings.target["kind"] == "csv":
        content["dots"] = np.column_stack([task.x, task.y])[:_DOTS, :2].tolist()
    else:
        content["line"] = (task.y if task.outputs == 2 else np.column_stack([task.x, task.y])).tolist()
    return Reply(content, bytes(payload))


def _logs(loss: Array) -> Array:
    return np.log10(loss[np.isfinite(loss) & (loss > 0)])


def _bars(losses: list[Array]) -> Array:
    """Return the edges of the bars over log10 of all losses, at multiples of a half."""
    logs = _logs(np.concatenate(losses))
    low, high = (math.floor(2 * logs.min()) / 2, math.ceil(2 * logs.max()) / 2) if len(logs) else (-1.0, 0.0)
    return np.linspace(low, max(high, low + 0.5), BARS + 1)


class Slow:
    """A value that is computed every few seconds, in at most a twentieth of the time; None if it cannot be computed."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._due, self._value = seconds, 0.0, None

    def value(self, work: Callable[[], Any]) -> Any:
        """Return the last value, or a new one from work() if it is due."""
        start = time.monotonic()
        if start >= self._due:
            self._value = None
            with contextlib.suppress(ValueError):  # smooth networks, and those with too many pieces
                self._value = work()
            end = time.monotonic()
            self._due = end + max(self._seconds, 20 * (end - start))
        return self._value


class Panel:
    """The panel of one activation; `paint` updates it."""

    def __init__(self, network: MLP, task: LearningTask, settings: Settings) -> None:
        self._network, self._task, self._shape = network, task, (settings.alpha, settings.c)
        self._cloud = Cloud(network, task, settings) if task.inputs == 1 else None
        self._course: list[list[Any]] = []
        self._every, self._seen, self._median = 1, 0, -1
        self._lines: list[dict[str, Any]] = []
        self._pieces, self._dead, self._edges = Slow(0.5), Slow(0.5), Slow(0.3)

    def paint(self, now: Snapshot, lines: bool, numbers: bool = True) -> tuple[dict[str, Any], Array, Array | None]:
        """Return the panel, its image, and the edges of the best network's regions.

        Args:
            now: the networks.
            lines: whether the two networks are traced again.
            numbers: whether the panel has the numbers: losses, pieces, dead units, alpha and c.
        """
        order = np.argsort(now.loss, kind="stable")  # NaN is last
        finite = now.loss[order][: int(np.isfinite(now.loss).sum())]
        best, median = int(order[0]), self._middle(order, len(finite))
        if lines or not self._lines:
            self._lines = self._polylines(now, [best, median])
        both = zip((best, median), self._lines, strict=True)
        networks = [{"member": i, "loss": _number(now.loss[i]), **line} for i, line in both]
        panel: dict[str, Any] = {"activation": self._network.activation, "best": networks[0], "median": networks[1]}
        if numbers:
            panel |= {
                "losses": self._remember(now.step, finite),
                "pieces": self._pieces.value(lambda: self._count_pieces(now)),
                "dead": self._dead.value(lambda: self._dead_share(now)),
                "diverged": len(now.loss) - len(finite),
                **self._alpha_and_c(now),
            }
        if self._cloud is not None:
            return panel, self._cloud.image(now.theta), None
        with np.errstate(all="ignore"):
            z = forward(self._network, self._in_units(now, [best]), pixels(self._task.box).T, *self._shape)
        return panel, surface_bytes(self._task, z[0, :, 0]), self._edges.value(lambda: self._find_edges(now, best))

    def _in_units(self, now: Snapshot, members: Any) -> Array:
        return in_units(self._network, now.theta[:, members], *self._task.scales)

    def _exact(self, now: Snapshot, members: Any) -> Exact:
        return exact(self._network, self._in_units(now, members), *self._shape)

    def _middle(self, order: Array, finite: int) -> int:
        """Return the network with the median loss; the last one again if it is among the middle tenth."""
        middle = max(finite - 1, 0) // 2
        if self._median < 0 or abs(int(np.flatnonzero(order == self._median)[0]) - middle) > finite / 20:
            self._median = int(order[middle])
        return self._median

    def _remember(self, step: int, finite: Array) -> dict[str, list[Any]]:
        """Return the losses so far; when there are too many points, every second one is dropped."""
        if self._course and self._course[-1][0] % self._every:  # only the newest may be between
            self._course.pop()
        if len(self._course) >= _MOST:
            self._every *= 2
            self._course = [row for row in self._course if row[0] % self._every == 0]
        places = [min(int(q * len(finite)), len(finite) - 1) for q in QUANTILES.values()]
        quantiles = [_number(finite[i]) if len(finite) else None for i in places]
        self._course.append([self._seen, step, *quantiles])
        self._seen += 1
        _, *columns = map(list, zip(*self._course, strict=True))
        return dict(zip(("steps", *QUANTILES), columns, strict=True))

    def _polylines(self, now: Snapshot, members: list[int]) -> list[dict[str, Any]]:
        """Return networks as exact or sampled polylines; nothing for two inputs."""
        if self._task.inputs == 2:
            return [{} for _ in members]
        low, high = self._task.box[0].tolist()
        # smooth networks, and those that diverge or have too short pieces, are sampled
        with contextlib.suppress(ValueError):
            traced = [one.merge() for one in curves(self._exact(now, members), low, high, limit=PIECES)]
            lines = [self._points(one.knots, one.values) for one in traced]
            return [{"pieces": len(line) - 1, "line": line} for line in lines]
        x = np.linspace(low, high, _WIDTH)
        with np.errstate(all="ignore"):
            y = np.nan_to_num(forward(self._network, self._in_units(now, members), x[None], *self._shape))
        return [{"pieces": None, "line": self._points(x, y[..., i].T)} for i in range(len(members))]

    def _points(self, x: Array, y: Array) -> list[list[float]]:
        """Return points of the picture with seven digits: (x, y), or both outputs."""
        points = y if self._task.outputs == 2 else np.stack([x, y[:, 0]], axis=1)
        largest = max(np.abs(self._task.box).max(), np.abs(self._task.y).max(), 1e-30)
        rounded: list[list[float]] = points.clip(-1e30, 1e30).round(7 - math.ceil(math.log10(largest))).tolist()
        return rounded

    def _find_edges(self, now: Snapshot, best: int) -> Array:
        """Return the edges between the regions of the best network, [n, 4]."""
        x, y = self._task.box.tolist()
        found = polygons(self._exact(now, [best]).member(0), (x, y), limit=PIECES)
        one, other = found.faces.neighbours.T
        bends = (one >= 0) & (other >= 0) & (found.labels[one] != found.labels[other])
        return np.asarray(found.vertices[found.faces.ends[bends]].reshape(-1, 4), dtype=np.float32)

    def _count_pieces(self, now: Snapshot) -> dict[str, float]:
        """Return quantiles of the number of pieces over the first networks."""
        members = np.arange(min(SAMPLE[self._task.inputs - 1], now.theta.shape[1]))
        members = members[(np.abs(now.theta[:, members]) < 1e20).all(axis=0)]  # NaN compares as false
        net, (x, *rest), most = self._exact(now, members), self._task.box.tolist(), PIECES * len(members)
        found = polygon_counts(net, (x, rest[0]), limit=most) if rest else counts(net, *x, limit=most)
        return {name: float(np.quantile(found.pieces, q)) for name, q in QUANTILES.items()}

    def _dead_share(self, now: Snapshot) -> float:
        """Return the fraction of dead units of the first networks."""
        x, units = self._task.scaled[0][:LOOKED].T, sum(self._network.widths[1:-1])
        with np.errstate(all="ignore"):
            return round(float(dead_units(self._network, now.theta[:, :64], x, *self._shape).mean()) / units, 4)

    def _alpha_and_c(self, now: Snapshot) -> dict[str, list[float]]:
        """Return the alpha and c of each hidden layer, for PLU; the median of learned ones."""
        if not self._network.activation.startswith("plu"):
            return {}
        given = [np.full((self._network.depth - 1, 1), value) for value in self._shape]
        both = zip(("alpha", "c"), self._network.alphas_and_cs(now.theta, *given), strict=True)
        return {name: np.median(np.nan_to_num(found), axis=1).astype(float).round(5).tolist() for name, found in both}


class Cloud:
    """The number of members in each pixel. With one output, the columns of the image are inputs.

    Two outputs span the image; the curve is evaluated at twice the number of points.
    """

    def __init__(self, network: MLP, task: LearningTask, settings: Settings) -> None:
        members, (low, high) = settings.networks, task.box[0].tolist()
        x = task.scales[0](np.linspace(low, high, _WIDTH * task.outputs)[:, None]).T
        ends = task.scales[1](view_of(task)[-task.outputs :].T).T  # of the image, for each output
        self._network, self._x, self._shape = network, x.astype(np.float32), (settings.alpha, settings.c)
        (low, high), pixels = ends.T[..., None, None], np.array(SIZE[-len(ends) :])[:, None, None]
        # place = factor z + offset for an output z; 0 and the one after the last are outside
        self._factors, self._last = (pixels / (high - low)).astype(np.float32), (pixels + 1).astype(np.float32)
        self._offsets = (1 - pixels * low / (high - low)).astype(np.float32)
        slow = bool(why_not_native())
        self._values = forward if slow else values
        parts = math.ceil(members * network.parameters * x.shape[1] / (_WORK // 4 if slow else _WORK))
        self._renewed = math.ceil(members / parts / VECTOR) * VECTOR
        # the number of members in each pixel: of each part of the ensemble, [parts, columns * rows], and of all
        self._parts = np.zeros((math.ceil(members / self._renewed), (_WIDTH + 2) * (_HEIGHT + 2)), dtype=np.int32)
        self._all, self._next = self._parts[0].copy(), 0
        self._bytes = np.rint(255 * np.log1p(np.arange(members + 1)) / np.log1p(members)).astype(np.uint8)

    def image(self, theta: Array) -> Array:
        """Return bytes [rows, columns], the top first: 0 where no member is, 255 where all are, by the logarithm."""
        start = self._next * self._renewed
        with np.errstate(all="ignore"):
            z = self._values(self._network, theta[:, start : start + self._renewed], self._x, *self._shape)
            z *= self._factors
            z += self._offsets
            # fmax takes the number where the other one is NaN
            *columns, row = np.fmin(np.fmax(z, 0, out=z), self._last, out=z).astype(np.intp)
        column = columns[0] if columns else np.arange(1, _WIDTH + 1)[:, None]
        counts = np.bincount((column * (_HEIGHT + 2) + row).ravel(), minlength=len(self._all))
        self._all += counts - self._parts[self._next]
        self._parts[self._next] = counts
        self._next = (self._next + 1) % len(self._parts)
        inside = self._all.reshape(_WIDTH + 2, _HEIGHT + 2)[1:-1, -2:0:-1].T
        return np.asarray(self._bytes[np.minimum(inside, len(self._bytes) - 1)])


def view_of(task: LearningTask) -> Array:
    """Return the ends of the picture, [2, 2]: the targets with a margin, or the box of two inputs."""
    low, high = task.y.min(0), task.y.max(0)
    margin = np.where(high > low, 0.2 * (high - low), np.maximum(0.2 * np.abs(high), 1.0))
    padded = np.stack([low - margin, high + margin], axis=1)
    return np.concatenate([task.box, padded])[:2] if task.outputs == 1 else padded


def pixels(box: Array) -> Array:
    """Return the centres of the pixels of an image of the box, [height * width, 2], the top row first."""
    (left, right), (bottom, top) = box
    x = left + (right - left) * (np.arange(_WIDTH) + 0.5) / _WIDTH
    y = top - (top - bottom) * (np.arange(_HEIGHT) + 0.5) / _HEIGHT
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def surface_bytes(task: LearningTask, z: Array) -> Array:
    """Return the values at `pixels` as bytes [height, width], 0 for the least target and 255 for the largest."""
    low, high = task.y.min(), task.y.max()
    shown = np.nan_to_num((z - low) * (255 / max(high - low, 1e-30)), nan=0.0).clip(0, 255)
    return np.asarray(np.rint(shown), dtype=np.uint8).reshape(_HEIGHT, _WIDTH)


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None
