"""Exact pieces: time for polygons and curves on one core, against bars, and how the cost grows with the pieces."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from plunit.pieces import Network, activation, cells, counts, curves, ensemble, network

ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
BOX = ((-3.0, 3.0), (-3.0, 3.0))


def random_network(*widths: int, f: Any = None, spread: float = 1.0, seed: int = 0) -> Network:
    """Weights U(-k, k), k = spread / sqrt(in), as nn.Linear draws them for spread = 1."""
    rng = np.random.default_rng(seed)
    layers: list[Any] = []
    for before, width in pairwise(widths):
        k = spread / np.sqrt(before)
        layers += [(rng.uniform(-k, k, (width, before)), rng.uniform(-k, k, width)), f or activation.plu()]
    return network(layers[:-1])


def sine_members(members: int, seed: int = 0) -> Network:
    """Networks of the sine experiment, 1 -> 3 -> 3 -> 1, N(0, 1) weights and zero biases."""
    rng = np.random.default_rng(seed)

    def pair(out: int, before: int) -> tuple[Any, Any]:
        return rng.standard_normal((out, before, members)), np.zeros((out, members))

    return ensemble([pair(3, 1), activation.plu(), pair(3, 3), activation.plu(), pair(1, 3)])


def best(call: Callable[[], Any], repeat: int = 5) -> tuple[float, Any]:
    """Return the shortest of some times in seconds, and the result."""
    times, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def table() -> None:
    """Print the bars."""
    print(f"{'work':52} {'measured':>22} {'bar':>10}")
    small = random_network(2, 20, 20, 1)
    seconds, found = best(lambda: cells(small, BOX))
    print(f"{'2 -> 20 -> 20 -> 1, PLU, [-3, 3]^2':52} {f'{seconds:.3f} s, {len(found)} polygons':>22} {'< 1 s':>10}")
    for spread in (1.0, 2.0):
        wide = random_network(2, 64, 64, 1, spread=spread)
        seconds, found = best(lambda wide=wide: cells(wide, BOX))
        name = f"2 -> 64 -> 64 -> 1, PLU, weights x {spread:g}, {len(found)} polygons"
        print(f"{name:52} {f'{len(found) / seconds:,.0f} polygons/s':>22} {'>= 50,000':>10}")
    members = sine_members(1000)
    for name, call in (("curves", curves), ("counts", counts)):
        seconds, _ = best(lambda call=call: call(members, -2 * np.pi, 2 * np.pi))
        print(f"{f'{name} of 1,000 members, 1 -> 3 -> 3 -> 1, PLU':52} {f'{seconds:.3f} s':>22} {'< 1 s':>10}")


def scaling() -> None:
    """Print time against the number of polygons: one deep network, larger and larger boxes."""
    net = random_network(2, *[32] * 8, 1, spread=4.0)
    print(f"\n2 -> 32 (8 times) -> 1, PLU\n{'box':16} {'polygons':>10} {'seconds':>9} {'us each':>10}")
    for half in (0.01, 0.04, 0.13, 0.4, 1.0, 10.0):
        box = ((-half, half), (-half, half))
        seconds, found = best(lambda box=box: cells(net, box), repeat=1 if half >= 1 else 3)
        per_cell = seconds / len(found) * 1e6
        print(f"{f'[-{half:g}, {half:g}]^2':16} {len(found):>10,} {seconds:>9.3f} {per_cell:>10.1f}")


def main() -> None:
    """Print both tables; in a process of its own, because NumPy reads the number of threads when it is imported."""
    if ONE_CORE.items() <= os.environ.items():
        table()
        scaling()
    else:
        subprocess.run([sys.executable, __file__], env={**os.environ, **ONE_CORE}, check=True)


if __name__ == "__main__":
    main()
