"""The picture of one activation: its cloud, two of its networks exactly, and what all of them have in common."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from plunit.ensemble import Network, forward, preactivations
from plunit.ensemble.arrays import Array
from plunit.ensemble.members import exact
from plunit.ensemble.units import in_units
from plunit.pieces import cell_counts, cells, counts, curves
from plunit.play.clouds import HEIGHT, WIDTH, Cloud, View
from plunit.play.courses import Snapshot
from plunit.play.settings import Settings
from plunit.play.targets import Task

QUANTILES = {"low": 0.05, "middle": 0.5, "high": 0.95}

MOST = 120
"""The most points of a loss curve; then every second one is left out."""

PIECES = 2000
"""A network with more pieces is drawn without them."""

SAMPLE = {1: 64, 2: 8}
"""Pieces are counted in so many networks, for one and for two inputs."""


class Slow:
    """Something that is worked out now and then: at most a twentieth of the time."""

    def __init__(self, work: Callable[[Snapshot, int], Any]) -> None:
        self._work, self._due = work, 0.0
        self.value: Any = None

    def update(self, snapshot: Snapshot, member: int) -> None:
        """Work it out again if it is due."""
        start = time.monotonic()
        if start >= self._due:
            self.value = self._work(snapshot, member)
            end = time.monotonic()
            self._due = end + max(0.3, 20 * (end - start))


class Panel:
    """What a page shows of one activation; `paint` brings it up to date."""

    def __init__(self, network: Network, task: Task, settings: Settings, view: View) -> None:
        self.network, self._task, self._shape = network, task, (settings.alpha, settings.c)
        self._cloud = Cloud(network, settings.networks, task, view, self._shape) if task.inputs == 1 else None
        self._curve: list[list[float]] = []
        self._every, self._count = 1, 0
        self._median = -1
        self._lines: dict[str, Any] = {}
        self._exact = network.function.exact is not None
        self._counted = Slow(self._count_pieces)
        self._dead = Slow(self._count_dead)
        self._edges = Slow(self._find_edges)

    def paint(self, now: Snapshot, lines: bool) -> tuple[dict[str, Any], Array, Array | None]:
        """Return the panel, its image, and the edges of the best network's cells; `lines` renews the two networks."""
        order = np.argsort(np.where(np.isfinite(now.loss), now.loss, np.inf), kind="stable")
        finite = now.loss[order][: int(np.isfinite(now.loss).sum())]
        best, median = int(order[0]), self._middle(order, len(finite))
        if lines or not self._lines:
            self._lines = self._drawn(now, best, median)
        self._counted.update(now, best)
        self._dead.update(now, best)
        if self._cloud is not None:
            self._cloud.update(now.theta)
            image, edges = self._cloud.image(), None
        else:
            image = self._surface(now, best)
            self._edges.update(now, best)
            edges = self._edges.value
        panel = {
            "activation": self.network.activation,
            **self._lines,
            "losses": self._remember(now.step, finite),
            "pieces": self._counted.value,
            "dead": self._dead.value,
            "diverged": len(now.loss) - len(finite),
            **self._shapes(now),
        }
        return panel, image, edges

    def _middle(self, order: Array, finite: int) -> int:
        """Return the network with the median loss; the last one again if it is among the middle tenth."""
        middle = max(finite - 1, 0) // 2
        if self._median >= 0:
            place = int(np.flatnonzero(order == self._median)[0])
            if abs(place - middle) <= finite / 20:
                return self._median
        self._median = int(order[middle])
        return self._median

    def _remember(self, step: int, finite: Array) -> dict[str, list[Any]]:
        """Return the course of the losses; every second point is left out when there are too many."""
        row = [float(step), *(_quantile(finite, q) for q in QUANTILES.values())]
        if self._count % self._every == 0 or not self._curve:
            self._curve.append(row)
        else:
            self._curve[-1:] = [row]
        self._count += 1
        if len(self._curve) > MOST:
            self._curve, self._every = self._curve[::2], 2 * self._every
        columns = [list(column) for column in zip(*self._curve, strict=True)]
        return dict(zip(("steps", *QUANTILES), columns, strict=True))

    def _drawn(self, now: Snapshot, best: int, median: int) -> dict[str, Any]:
        """Return the best and the median network: exact polylines with kinks, or sampled ones."""
        pair = in_units(self.network, now.theta[:, [best, median]], *self._task.scales)
        found = [self._sampled(pair[:, i : i + 1]) for i in range(2)] if self._task.inputs == 1 else [{}, {}]
        if self._exact and self._task.inputs == 1:
            try:
                low, high = self._task.box[0].tolist()
                traced = curves(exact(self.network, pair, *self._shape), low, high, limit=PIECES)
                found = [self._polyline(curve.merged()) for curve in traced]
            except ValueError:  # networks that diverge, or have pieces too short for numbers
                pass
        both = zip(("best", "median"), (best, median), found, strict=True)
        return {name: {"member": i, "loss": _number(now.loss[i]), **drawn} for name, i, drawn in both}

    def _polyline(self, curve: Any) -> dict[str, Any]:
        points = self._points(curve.knots, curve.values)
        return {"pieces": curve.pieces, "line": points, "knots": points[1:-1]}

    def _sampled(self, theta: Array) -> dict[str, Any]:
        x = np.linspace(*self._task.box[0], WIDTH)
        with np.errstate(all="ignore"):
            y = forward(self.network, theta, x[None], *self._shape)[:, :, 0].T
        return {"pieces": None, "line": self._points(x, np.nan_to_num(y)), "knots": []}

    def _points(self, x: Array, y: Array) -> list[list[float]]:
        """Return points of the picture with six digits: (x, y), or both outputs."""
        points = y if self._task.outputs == 2 else np.stack([x, y[:, 0]], axis=1)
        digits = 6 - math.ceil(math.log10(max(np.abs(self._task.box).max(), np.abs(self._task.y).max(), 1e-30)))
        rounded: list[list[float]] = np.clip(points, -1e30, 1e30).round(digits).tolist()
        return rounded

    def _surface(self, now: Snapshot, best: int) -> Array:
        theta = in_units(self.network, now.theta[:, [best]], *self._task.scales)
        with np.errstate(all="ignore"):
            z = forward(self.network, theta, pixels(self._task.box).T, *self._shape)[0, :, 0]
        return surface_bytes(self._task, z)

    def _find_edges(self, now: Snapshot, best: int) -> Array | None:
        """Return the edges between the cells of the best network, [n, 4]; None for smooth or too many ones."""
        theta = in_units(self.network, now.theta[:, [best]], *self._task.scales)
        try:
            (left, right), (bottom, top) = self._task.box.tolist()
            found = cells(exact(self.network, theta, *self._shape), ((left, right), (bottom, top)), limit=PIECES)
        except ValueError:
            return None
        inner = (found.faces.beside >= 0).all(axis=1)
        return found.vertices[found.faces.ends[inner]].reshape(-1, 4).astype(np.float32)

    def _count_pieces(self, now: Snapshot, best: int) -> dict[str, float] | None:
        """Return quantiles of the number of pieces over the first networks."""
        if not self._exact:
            return None
        some = now.theta[:, : SAMPLE[self._task.inputs]]
        some = some[:, (np.abs(some) < 1e20).all(axis=0)]  # NaN compares as false
        if not some.shape[1]:
            return None
        net = exact(self.network, in_units(self.network, some, *self._task.scales), *self._shape)
        (low, high), *other = self._task.box.tolist()
        try:
            found = cell_counts(net, ((low, high), tuple(other[0]))) if other else counts(net, low, high)
        except ValueError:
            return None
        return {name: float(np.quantile(found.pieces, q)) for name, q in QUANTILES.items()}

    def _count_dead(self, now: Snapshot, best: int) -> float:
        """Return the share of hidden units, of the first networks, whose slope is 0 at every point."""
        theta = now.theta[:, : SAMPLE[1]]
        x = self._task.scaled[0][:200].T
        shape = [np.full((self.network.depth - 1, theta.shape[1]), value, theta.dtype) for value in self._shape]
        with np.errstate(all="ignore"):
            *hidden, _ = preactivations(self.network, theta, x, *self._shape)
            alphas, cs = self.network.shapes(theta, *shape)
            dead = [
                (self.network.function.slope(z, alpha, c) == 0).all(axis=1).mean()
                for z, alpha, c in zip(hidden, alphas, cs, strict=True)
            ]
        return round(float(np.mean(dead)), 4)

    def _shapes(self, now: Snapshot) -> dict[str, list[float]]:
        """Return the alpha and c of each hidden layer, for PLU; the median of learned ones."""
        if not self.network.activation.startswith("plu"):
            return {}
        if not self.network.learned:
            return {name: [v] * (self.network.depth - 1) for name, v in zip(("alpha", "c"), self._shape, strict=True)}
        both = self.network.shapes(now.theta, now.theta[:0], now.theta[:0])
        return {
            name: [float(v) for v in np.median(np.nan_to_num(values), axis=1).round(5)]
            for name, values in zip(("alpha", "c"), both, strict=True)
        }


def pixels(box: Array) -> Array:
    """Return the centres of the pixels of an image of the box, [HEIGHT * WIDTH, 2], the top row first."""
    (left, right), (bottom, top) = box
    x = left + (right - left) * (np.arange(WIDTH) + 0.5) / WIDTH
    y = top - (top - bottom) * (np.arange(HEIGHT) + 0.5) / HEIGHT
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def surface_bytes(task: Task, z: Array) -> Array:
    """Return the values at `pixels` as bytes [HEIGHT, WIDTH], 0 and 255 for the ends of the task's range."""
    low, high = value_range(task)
    shown = np.nan_to_num((z - low) * (255 / (high - low)), nan=0.0).clip(0, 255)
    return np.rint(shown).astype(np.uint8).reshape(HEIGHT, WIDTH)


def value_range(task: Task) -> tuple[float, float]:
    """Return the least and the largest target."""
    low, high = float(task.y.min()), float(task.y.max())
    return (low, high) if low < high else (low - 1, high + 1)


def _quantile(ordered: Array, q: float) -> float | None:
    return None if not len(ordered) else _number(ordered[min(int(q * len(ordered)), len(ordered) - 1)])


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None
