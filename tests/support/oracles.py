"""Independent ways to say what PLU is, and the inputs worth asking about."""

from fractions import Fraction

import numpy as np

ALPHAS_AND_CS = [(0.1, 1.0), (0.1, 0.7), (0.0, 1.0), (0.25, 2.0), (0.5, 0.0), (1.0, 1.0), (3.0, 0.5), (1e-3, 1.3)]
CONTRACTING = [(alpha, c) for alpha, c in ALPHAS_AND_CS if alpha <= 1]
NO_SLOPES_OF_AN_INVERSE = [0.0, 1e-39, 1.1e-38, 1e38, np.float32(0), np.array([0.1, 1e-39])]
"""Each an alpha that is not normal in float32, or whose 1/alpha is not."""

C_BEYOND_FLOAT32 = [(0.0, 1e39), (0.1, 1e39), (0.7, 1e300), (2.0, 1e39), (np.float64(0.1), np.float64(1e39))]
LARGE = np.float32([-3.4e38, -3, -0.5, 0, 0.5, 3, 3.4e38])
"""Numbers of float32, the largest included, which are all within these c."""

CORNERS = np.array([-np.inf, -0.0, 0.0, np.nan, np.inf], np.float32)


def paper(x, alpha, c):
    """The max/min form of the paper in float64, good for 0 <= alpha <= 1."""
    x = np.asarray(x, np.float64)
    return np.maximum(alpha * (x + c) - c, np.minimum(alpha * (x - c) + c, x))


def exact(x, alpha, c):
    """PLU in rational arithmetic, for finite floats, rounded once at the end."""
    x, alpha, c = Fraction(float(x)), Fraction(float(alpha)), Fraction(float(c))
    m = max(-c, min(x, c))
    return float(m + alpha * (x - m))


def points(c, dtype=np.float64):
    """Ordinary numbers, the kinks and their neighbours, zeros of both signs, the smallest and largest numbers."""
    c = np.asarray(c, dtype)
    info = np.finfo(dtype)
    kink = [c, np.nextafter(c, dtype(np.inf)), np.nextafter(c, dtype(0))]
    ordinary = np.random.default_rng(0).normal(scale=2, size=64)
    positive = np.array([*kink, *np.abs(ordinary), info.tiny, info.max / 16, 0.0], dtype)
    return np.concatenate([positive, -positive])


def kinks_and_neighbours(c):
    """-c and c, the float32 numbers just inside, and those just outside; normal ones, as XLA takes subnormals for 0."""
    kinks = np.float32([-c, c])
    out = np.float32([-1, 1]) * max(np.spacing(np.float32(c)), np.float32(1e-30))
    return kinks, kinks - out, kinks + out


def few_points(c):
    """The kinks, their neighbours, and a few ordinary float32 numbers."""
    return np.concatenate([*kinks_and_neighbours(c), np.linspace(-3, 3, 14)]).astype(np.float32)


def exact_smooth(x, alpha, c, rho):
    """SmoothPLU(x) and its slope as Fractions: the area under a slope that falls linearly around c."""
    size, alpha, c, rho = (Fraction(float(value)) for value in (abs(x), alpha, c, rho))
    w = rho * c
    inner, outer = min(size, c - w), max(size - c - w, 0)
    width = size - inner - outer
    slope = 1 - (1 - alpha) * width / (2 * w)
    area = inner + width * (1 + slope) / 2 + alpha * outer
    return (area if x >= 0 else -area), slope
