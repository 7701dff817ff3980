"""Exact pieces on one core: time for polygons and curves, how it grows with the pieces, and bounds of fixed point."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.timing import Bar, best, has_one_core, show
from plunit.ensemble import MLP, initial, train
from plunit.ensemble.mlp import exact
from plunit.pieces import (
    Ensemble,
    Network,
    activation,
    counts,
    curves,
    ensemble,
    error_bound,
    network,
    polygons,
    quantize,
)

BOX = ((-3.0, 3.0), (-3.0, 3.0))


def random_network(*widths: int, f: Any = None, spread: float = 1.0, seed: int = 0) -> Network:
    """Weights U(-k, k), k = spread / sqrt(in), as nn.Linear draws them for spread = 1."""
    rng = np.random.default_rng(seed)
    layers: list[Any] = []
    for before, width in pairwise(widths):
        k = spread / np.sqrt(before)
        layers += [(rng.uniform(-k, k, (width, before)), rng.uniform(-k, k, width)), f or activation.plu()]
    return network(layers[:-1])


def sine_members(members: int, seed: int = 0) -> Ensemble:
    """Networks of the sine experiment, 1 -> 3 -> 3 -> 1, N(0, 1) weights and zero biases."""
    rng = np.random.default_rng(seed)

    def pair(out: int, before: int) -> tuple[Any, Any]:
        return rng.standard_normal((out, before, members)), np.zeros((out, members))

    return ensemble([pair(3, 1), activation.plu(), pair(3, 3), activation.plu(), pair(1, 3)])


def table() -> None:
    """Print the bars."""
    print(f"{'work':52} {'measured':>22} {'bar':>10}")
    small = random_network(2, 20, 20, 1)
    seconds, found = best(lambda: polygons(small, BOX))
    print(f"{'2 -> 20 -> 20 -> 1, PLU, [-3, 3]^2':52} {f'{seconds:.3f} s, {len(found)} polygons':>22} {'< 1 s':>10}")
    for spread in (1.0, 2.0):
        wide = random_network(2, 64, 64, 1, spread=spread)
        seconds, found = best(lambda wide=wide: polygons(wide, BOX))
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
        seconds, found = best(lambda box=box: polygons(net, box), repeat=1 if half >= 1 else 3)
        per_polygon = seconds / len(found) * 1e6
        print(f"{f'[-{half:g}, {half:g}]^2':16} {len(found):>10,} {seconds:>9.3f} {per_polygon:>10.1f}")


def trained(inputs: int, members: int = 7) -> Ensemble:
    """Networks of 2 x 16 PLU that have learned 2 sin(x_1 + 0.5) ... sin(x_n + 0.5) on [-2, 2]^n."""
    x = np.random.default_rng(inputs).uniform(-2, 2, (inputs, 1000)).astype(np.float32)
    form = MLP((inputs, 16, 16, 1), "plu")
    scales = [1 / np.sqrt(width) for width in form.widths[:-1]]
    start = initial(form, [np.random.default_rng(seed) for seed in range(members)], scales=scales)
    y = 2 * np.sin(x + 0.5).prod(axis=0, keepdims=True)
    return exact(form, train(form, start, (x, y), steps=2000).theta)


def looseness(nets: Ensemble, bits: int, points: int = 100_000) -> float:
    """Return `error_bound` of fixed point over the largest error at random points, the median of all members."""
    found = []
    for member in range(nets.members):
        fixed = quantize(nets.member(member), [(-2, 2)] * nets.inputs, bits)
        x = np.random.default_rng(member).uniform(-2, 2, (points, nets.inputs))
        found.append(error_bound(fixed)[0] / np.abs(fixed(x) - fixed.net(x)).max())
    return float(np.median(found))


def fixed_point() -> None:
    """Print the bounds of fixed point over the largest errors found."""
    print()
    nets = {inputs: trained(inputs) for inputs in (1, 2, 3, 4, 5)}
    for bits in (16, 8):
        for inputs, some in nets.items():
            show(f"bound / largest error, int{bits}, {inputs} inputs", looseness(some, bits), Bar(3))


def main() -> None:
    """Print all tables."""
    if has_one_core("benchmarks.pieces"):
        table()
        scaling()
        fixed_point()


if __name__ == "__main__":
    main()
