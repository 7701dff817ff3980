"""The form of a density network, and its random start: blocks of an affine map and an activation, then one more map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.base.ranges import as_count
from plunit.ensemble.arrays import Array

MOST_FEATURES = 64  # the largest number of features of the compiled program

LEARNED = {"smooth": ("alpha", "c", "rho"), "plu": ("alpha", "c"), "leaky": ("alpha",)}
"""What each activation learns of every unit: SmoothPLU, PLU and LeakyReLU."""

ALPHA = 0.7  # blocks start with the slopes 0.7 and 1/0.7 in turn: a network that neither contracts nor expands


@dataclass(frozen=True)
class Architecture:
    """z = A_B(sigma(... A_1(sigma(A_0 x)))) with A(x) = P L U x + b and one alpha, c and rho for every unit.

    A network's parameters are one vector, by kind: the lower triangles of all maps, the upper ones (by columns), the
    logarithms of the diagonals, the biases, and of all units log alpha, log c and logit rho, as far as there are any.

    Attributes:
        features: n.
        blocks: B, how many activations.
        activation: "smooth", "plu" or "leaky".

    >>> Architecture(2, 12).parameters, Architecture(2, 48).parameters
    (150, 582)
    """

    features: int
    blocks: int
    activation: str = "smooth"

    def __post_init__(self) -> None:
        as_count("features", self.features, 1)
        as_count("blocks", self.blocks)
        if self.features > MOST_FEATURES:
            raise ValueError(f"features must be at most {MOST_FEATURES}, got {self.features}; drop columns")
        if self.activation not in LEARNED:
            raise ValueError(f"unknown activation {self.activation!r}; choose one of {', '.join(LEARNED)}")

    @property
    def maps(self) -> int:
        """The number of affine maps."""
        return self.blocks + 1

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """The shape of each kind of parameters, in their order."""
        triangle = (self.maps, self.features * (self.features - 1) // 2)
        maps, units = (self.maps, self.features), (self.blocks, self.features)
        return {
            "lower": triangle,
            "upper": triangle,
            "log_diagonal": maps,
            "bias": maps,
            **dict.fromkeys(LEARNED[self.activation], units),
        }

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(rows * columns for rows, columns in self.sizes.values())

    def views(self, theta: Array) -> dict[str, Array]:
        """Return the parameters of each kind, [maps or blocks, ...], as views."""
        ends = np.cumsum([rows * columns for rows, columns in self.sizes.values()])
        parts = np.split(theta, ends[:-1])
        return {name: part.reshape(size) for part, (name, size) in zip(parts, self.sizes.items(), strict=True)}


@dataclass(frozen=True)
class Start:
    """The first parameters of a network, and what stays as it is."""

    theta: Array  # [parameters]
    order: Array  # [maps, n]: row i of W is row order[i] of L U
    sign: Array  # [maps, n], of the diagonals of U


def start(architecture: Architecture, rng: np.random.Generator, rho: float = 0.5) -> Start:
    """Return random rotations with biases 0, slopes 0.7 and 1/0.7 in turn, c = 1 and the given rho."""
    n, maps = architecture.features, architecture.maps
    theta = np.zeros(architecture.parameters, np.float32)
    views = architecture.views(theta)
    order, sign = np.empty((maps, n), np.int64), np.empty((maps, n), np.float32)
    rows, columns = np.tril_indices(n, -1)
    for i in range(maps):
        order[i], lower, upper = factors(rotation(n, rng))
        views["lower"][i], views["upper"][i] = lower[rows, columns], upper[columns, rows]
        views["log_diagonal"][i], sign[i] = np.log(np.abs(upper.diagonal())), np.sign(upper.diagonal())
    views["alpha"][0::2], views["alpha"][1::2] = np.log(ALPHA), -np.log(ALPHA)
    if "rho" in views:
        views["rho"][...] = np.log(rho / (1 - rho))
    return Start(theta, order, sign)


def rotation(n: int, rng: np.random.Generator) -> Array:
    """Return a random rotation: orthogonal, with determinant 1."""
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    q = q * np.sign(r.diagonal())
    q[0] *= np.sign(np.linalg.det(q))
    return np.asarray(q)


def factors(matrix: Array) -> tuple[Any, Array, Array]:
    """Return order, L and U with matrix[i] = (L U)[order[i]], by elimination with row pivots.

    >>> order, lower, upper = factors(np.array([[0.0, 2.0], [1.0, 3.0]]))
    >>> (lower @ upper)[order]
    array([[0., 2.],
           [1., 3.]])
    """
    n = len(matrix)
    upper, lower, rows = np.array(matrix, dtype=np.float64), np.eye(n), np.arange(n)
    for i in range(n):
        pivot = i + int(np.abs(upper[i:, i]).argmax())
        for part in (upper, rows):
            part[[i, pivot]] = part[[pivot, i]]
        lower[[i, pivot], :i] = lower[[pivot, i], :i]
        lower[i + 1 :, i] = upper[i + 1 :, i] / upper[i, i]
        upper[i + 1 :] -= np.outer(lower[i + 1 :, i], upper[i])
    return np.argsort(rows), lower, np.triu(upper)
