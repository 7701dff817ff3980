"""Forms over boxes against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from plunit.pieces import activation
from plunit.pieces.fixed.zonotopes import BoxForm, _chord


@pytest.mark.parametrize("seed", range(40))
def test_a_chord_is_as_far_from_the_function_as_it_says(seed):
    """With knots and intercepts that are large compared with the range, where products cancel."""
    rng = np.random.default_rng(seed)
    knots = 10.0 ** rng.integers(0, 9) + np.sort(rng.uniform(-1, 1, 2))
    f = activation.piecewise(knots, rng.normal(size=3)).broadcast(1)
    middle, reach = np.array([[knots.mean()]]), np.array([[10.0 ** rng.integers(-9, 1)]])
    form = BoxForm(middle, reach[..., None], np.zeros((1, 1)), np.abs(middle) + reach)
    slope, shift, radius = (Fraction(float(part[0, 0])) for part in _chord([(1.0, f.functions)], form))
    low, high = Fraction(float(form.low[0, 0])), Fraction(float(form.high[0, 0]))
    inside = [low, high, *(Fraction(knot) for knot in knots.tolist() if low < knot < high)]
    values = f(np.array(inside, dtype=object)[:, None])[:, 0]
    assert max(abs(value - slope * z - shift) for z, value in zip(inside, values, strict=True)) <= radius
