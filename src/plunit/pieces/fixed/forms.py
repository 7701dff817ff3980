"""center + sum_i coefficient_i s_i +- slack, all s_i in [-1, 1]: linear forms for many boxes at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.pieces.arrays import Floats

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class BoxForm:
    """center [boxes, units] + coefficients [boxes, units, symbols] s, all symbols in [-1, 1], +- slack [boxes, units].

    size: [boxes, units], a bound on the absolute value that costs less than `radius` and may be larger.
    """

    center: Floats
    coefficients: Floats
    slack: Floats
    size: Floats

    @cached_property
    def radius(self) -> Floats:
        """The largest distance from the center."""
        return np.asarray(np.abs(self.coefficients).sum(axis=2) * (1 + 1e-12) + self.slack)

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute value."""
        return np.asarray(np.abs(self.center) + self.radius)

    @property
    def low(self) -> Floats:
        """The smallest value."""
        return self.center - self.radius

    @property
    def high(self) -> Floats:
        """The largest value."""
        return self.center + self.radius

    def __add__(self, other: BoxForm) -> BoxForm:
        size = self.size + other.size
        slack = self.slack + other.slack + 4 * EPS * size
        return BoxForm(self.center + other.center, self.coefficients + other.coefficients, slack, size)

    def times(self, factor: Floats, plus: Floats) -> BoxForm:
        """Return factor * form + plus, for factor and plus [boxes, units]."""
        size = np.abs(factor) * self.size + np.abs(plus)
        slack = np.abs(factor) * self.slack + 4 * EPS * size
        return BoxForm(factor * self.center + plus, factor[..., None] * self.coefficients, slack, size)

    def map(self, weight: Floats, bias: Floats) -> BoxForm:
        """Return weight @ form + bias."""
        steep = np.abs(weight).T
        size = self.size @ steep + np.abs(bias)
        slack = self.slack @ steep + (weight.shape[1] + 4) * EPS * size
        return BoxForm(self.center @ weight.T + bias, np.matmul(weight, self.coefficients), slack, size)

    def spread(self, before: int, radius: Floats, after: int) -> BoxForm:
        """Return the form +- radius [boxes, units]: a new symbol for each unit, and others before and after them."""
        boxes, units, count = self.coefficients.shape
        coefficients = np.zeros((boxes, units, count + before + units + after))
        coefficients[..., :count] = self.coefficients
        own = np.arange(units)
        coefficients[:, own, count + before + own] = radius
        return BoxForm(self.center, coefficients, self.slack, self.size + radius)
