"""Independent ways to say what PLU is, and the inputs worth asking about."""

from fractions import Fraction

import numpy as np

ALPHAS_AND_CS = [(0.1, 1.0), (0.1, 0.7), (0.0, 1.0), (0.25, 2.0), (0.5, 0.0), (1.0, 1.0), (3.0, 0.5), (1e-3, 1.3)]


def paper(x, alpha, c):
    """The max/min form of the paper, good for 0 <= alpha <= 1."""
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
