"""The activations of density networks in NumPy: value, slope, and the gradients that training needs.

With a = |u| (for LeakyReLU a = -u) let r go from 0 to 1 where the slope goes from 1 to alpha: along the bend
|a - c| < w, or at once at the kink. The slope is s = 1 - (1 - alpha) r, and the value is a - (1 - alpha) R with R the
integral of r: R = w r^2 + max(a - c - w, 0). From these dR/dc = -r and dR/dw = r (1 - r).

At a kink log s jumps by log alpha. Its derivative is 0 elsewhere, yet samples cross the kink when parameters change.
`BlockUnits.turn` has the density there from the samples that are nearer than `width`: log(alpha) / (2 width) for each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.ensemble.arrays import Array


@dataclass(frozen=True)
class BlockUnits:
    """The units of one block: columns [n, 1].

    Attributes:
        alpha: the outer slopes.
        c: where the kinks are; 0 for LeakyReLU.
        w: the half-widths of the bends; None for kinks.
        width: how near the samples are that stand for the density at a kink; 0 for no estimate.
        sides: 2, or 1 for LeakyReLU.
    """

    alpha: Array
    c: Array
    w: Array | None
    width: Array
    sides: int

    def split(self, u: Array) -> tuple[Array, Array]:
        """Return a and the sign with u = sign a."""
        sign = np.copysign(np.ones((), u.dtype), u) if self.sides == 2 else np.full_like(u, -1)
        return sign * u, sign

    def bend(self, a: Array) -> tuple[Array, Array]:
        """Return r and R."""
        if self.w is None:
            return (a > self.c).astype(a.dtype), np.maximum(a - self.c, 0)
        r = np.clip((a - (self.c - self.w)) / (2 * self.w), 0, 1)
        return r, self.w * r**2 + np.maximum(a - (self.c + self.w), 0)

    def slope(self, r: Array) -> Array:
        """Return s; at the ends 1 and alpha to the bit."""
        return np.where(r < 1, 1 - (1 - self.alpha) * r, self.alpha)

    def turn(self, a: Array, r: Array, slope: Array) -> Array:
        """Return -(d log s / d a)."""
        if self.w is not None:
            return np.where((r > 0) & (r < 1), (1 - self.alpha) / (2 * self.w * slope), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = np.where(self.width > 0, -np.log(self.alpha) / (2 * self.width), 0)
        return np.where(np.abs(a - self.c) < self.width, density, 0)

    def forward(self, u: Array) -> tuple[Array, Array]:
        """Return the values and the log-slopes."""
        a, sign = self.split(u)
        r, integral = self.bend(a)
        return u - sign * (1 - self.alpha) * integral, np.log(self.slope(r))

    def inverse(self, y: Array) -> tuple[Array, Array]:
        """Return the u with value y, and the log-slopes there."""
        b, sign = self.split(y)
        if self.w is None:
            slope = np.where(b > self.c, self.alpha, 1)
            return sign * np.where(b > self.c, self.c + (b - self.c) / self.alpha, b), np.log(slope)
        inner, end = self.c - self.w, 1 + self.alpha
        v = np.clip((b - inner) / self.w, 0, end)
        root = np.sqrt(np.where(self.alpha < 1, self.alpha**2 + (1 - self.alpha) * (end - v), 1 + (self.alpha - 1) * v))
        r = v / (1 + root)
        a = np.where(r < 1, inner + 2 * self.w * r, self.c + (b - self.c) / self.alpha)
        return sign * np.where(r > 0, a, b), np.log(self.slope(np.where(v < end, r, 1)))

    def backward(self, u: Array, in_value: Array, in_log: Array) -> tuple[Array, dict[str, Array]]:
        """Return the gradient in u and those in alpha, c and w [n], from the ones in the values and the log-slopes."""
        a, sign = self.split(u)
        r, integral = self.bend(a)
        slope = self.slope(r)
        in_a, turned = sign * in_value, in_log * self.turn(a, r, slope)
        moved = in_a * r * (1 - self.alpha)
        found = {
            "alpha": (in_a * integral + in_log * r / slope).sum(1),
            "c": (moved + turned).sum(1),
            "w": -(moved * (1 - r) + turned * (1 - 2 * r)).sum(1),
        }
        return sign * (in_a - moved - turned), found
