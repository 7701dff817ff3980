"""Least-squares segments and pwlf's `fitfast`: time, squared error, and how often their number is found.

`python -m benchmarks segments` takes 24 series and 240 signals; `python -m benchmarks.segments --full` takes 240 and
2,400. Times are seconds of one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.timing import Bar, has_one_core, show
from plunit.pieces import fit_segments

PIECES = range(3, 13)
FEW = range(3, 7)
"""Numbers of segments for which fitfast is quick."""
STRENGTHS = (10.0, 5.0, 3.0, 2.0, 1.0, 0.5)
CLEAR = 2.0
"""A kink is clearly visible if its size is at least this number of standard deviations of the noise; see `signal`."""


def signal(rng: Any, pieces: int, strength: float, points: int) -> tuple[Any, Any]:
    """Return x, y of a random piecewise-linear curve with noise whose weakest kink has the given strength.

    Knots are uniform on [0, 1], but at least 0.4 / pieces apart; values at the knots are N(0, 1); x is uniform. A kink
    stands out by the distance between its value and the chord of the neighbouring knots. The strength is the least of
    these distances, divided by the standard deviation of the noise, which is normal.
    """
    gap = 0.4 / pieces
    free = np.sort(rng.uniform(0, 1 - pieces * gap, pieces - 1))
    knots = np.concatenate([[0.0], free + gap * np.arange(1, pieces), [1.0]])
    values = rng.normal(size=pieces + 1)
    share = (knots[1:-1] - knots[:-2]) / (knots[2:] - knots[:-2])
    distance = np.abs(values[1:-1] - (1 - share) * values[:-2] - share * values[2:])
    x = np.sort(rng.uniform(0, 1, points))
    return x, np.interp(x, knots, values) + distance.min() / strength * rng.normal(size=points)


def smooth(rng: Any, pieces: int, points: int) -> tuple[Any, Any]:
    """Return a sum of sines with noise."""
    x = np.linspace(0, 1, points)
    waves = [rng.normal() * np.sin(rng.uniform(1, 2 * pieces) * x + rng.uniform(0, 6)) for _ in range(4)]
    return x, np.sum(waves, axis=0) + 0.1 * rng.normal(size=points)


def walk(rng: Any, pieces: int, points: int) -> tuple[Any, Any]:
    """Return a random walk."""
    return np.arange(points) / points, np.cumsum(rng.normal(size=points)) / np.sqrt(points)


KINDS: dict[str, Callable[..., Any]] = {
    "segments with noise": lambda rng, pieces, points: signal(rng, pieces, 3.0, points),
    "sines with noise": smooth,
    "random walks": walk,
}


def against_pwlf(series: int) -> None:
    """Print the time and the squared error against pwlf with the same number of segments; its starts are random."""
    import pwlf

    rows: dict[str, list[tuple[float, float, float, int]]] = {kind: [] for kind in KINDS}
    for number in range(series):
        rng = np.random.default_rng(number)
        kind = list(KINDS)[number % len(KINDS)]
        pieces = PIECES[number // len(KINDS) % len(PIECES)]
        x, y = KINDS[kind](rng, pieces, int(rng.integers(1500, 3001)))
        start = time.process_time()
        found = fit_segments(x, y, pieces)
        middle = time.process_time()
        theirs = pwlf.PiecewiseLinFit(x, y)
        theirs.fitfast(pieces)
        end = time.process_time()
        rows[kind].append((middle - start, end - middle, found.squared_error / float(theirs.ssr), pieces))
    every = [row for kind in KINDS for row in rows[kind]]
    names = "".join(f"{name:>9}" for name in ("time", "median", "error", "worst"))
    print(f"{'against fitfast, 3 to 12 segments':34}{'series':>8}{'seconds':>16}{names}")
    for kind, table in {**rows, "all": every}.items():
        ours, other, error, _ = np.array(table).T
        seconds = f"{ours.sum():.2f} / {other.sum():.1f}"
        ratios = f"{ours.sum() / other.sum():>9.4f}{np.median(ours / other):>9.4f}{np.median(error):>9.4f}"
        print(f"{kind:34}{len(table):>8}{seconds:>16}{ratios}{error.max():>9.4f}")
    ours, other, error, counts = np.array(every).T
    within = float((ours / other <= 0.05).mean())
    show("seconds for all series / fitfast's", ours.sum() / other.sum(), Bar(0.05))
    show("share of the series whose own ratio is at most 0.05; few segments take fitfast less", within, None)
    for pieces in FEW:
        show(f"median of the ratios for {pieces} segments", np.median((ours / other)[counts == pieces]), None)
    show("series with a larger squared error, by more than 1e-6 of fitfast's", (error > 1 + 1e-6).sum(), Bar(0))


def found_without_being_told(signals: int) -> None:
    """Print how often the number of segments is found."""
    per_strength = signals // len(STRENGTHS)
    print(f"\n{'weakest kink / noise':24}{'signals':>8}{'found':>9}{'fewer':>9}{'more':>9}{'seconds':>9}")
    clear = []
    for strength in STRENGTHS:
        off, start = [], time.process_time()
        for number in range(per_strength):
            # other signals than those on which the criterion was compared with others
            rng = np.random.default_rng([1, number, round(10 * strength)])
            pieces = PIECES[number % len(PIECES)]
            x, y = signal(rng, pieces, strength, int(rng.integers(500, 3001)))
            off.append(len(fit_segments(x, y).curve.slopes) - pieces)
        seconds = (time.process_time() - start) / len(off)
        shares = "".join(f"{np.mean(by):>9.1%}" for by in (np.equal(off, 0), np.less(off, 0), np.greater(off, 0)))
        print(f"{strength:<24g}{len(off):>8}{shares}{seconds:>9.3f}")
        clear += off if strength >= CLEAR else []
    share = float(np.equal(clear, 0).mean())
    show(f"number of segments found, kinks of {CLEAR:g} or more times the noise", share, Bar(0.9, True))


def main() -> None:
    """Print both tables."""
    full = ["--full"] if "--full" in sys.argv else []
    if not has_one_core("benchmarks.segments", *full):
        return
    if find_spec("pwlf") is None:
        print("against pwlf: left out, because pwlf is not installed; pip install 'plunit[bench]'")
    else:
        against_pwlf(240 if full else 24)
    found_without_being_told(2400 if full else 240)


if __name__ == "__main__":
    main()
