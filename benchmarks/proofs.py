"""Largest values, proved: time against the two-ReLU big-M form in the same solver, and how often a minute suffices."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from benchmarks.pieces import random_network
from benchmarks.timing import Bar, show
from plunit.pieces import Network, maximum, polygons
from plunit.pieces.proofs.encoding import interval_of
from plunit.pieces.proofs.program import Form, Program
from plunit.torch import PLU, to_network

SHAPES = ((2, (32, 32, 32)), (5, (32, 32)), (10, (16, 16)))
SEEDS = 2
LIMIT = 60.0
PATIENCE = 120.0
POINTS = 200_000
NETWORKS = 100
PLANES = 1000

GAP_0 = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-9}
"""The defaults of HiGHS, except for its relative gap of 1e-4."""


def trained(inputs: int, widths: tuple[int, ...], seed: int, steps: int = 600) -> Network:
    """A PLU network fitted to a sum of three sines of random directions on [-2, 2]^inputs."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    before = inputs
    for width in widths:
        layers += [nn.Linear(before, width), PLU()]
        before = width
    model = nn.Sequential(*layers, nn.Linear(before, 1))
    direction, phase = torch.randn(inputs, 3), 6 * torch.rand(3)
    adam = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(steps):
        x = 4 * torch.rand(256, inputs) - 2
        loss = (model(x) - torch.sin(x @ direction + phase).sum(1, keepdim=True)).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return to_network(model)


def big_m(net: Network, box: np.ndarray, seconds: float) -> tuple[float, float]:
    """Maximise with PLU(z) = alpha z + (1 - alpha) (relu(z + c) - relu(z - c) - c), each relu by its big-M rows.

    Return the bound and the seconds.
    """
    start = time.monotonic()
    program = Program()
    program.columns(len(box))
    y, (low, high) = Form(np.diag(box[:, 1] - box[:, 0]), box[:, 0]), box.T
    for layer, f in net.hidden:
        low, high = interval_of(layer.weight, layer.bias, low, high)
        z = y.map(layer.weight, layer.bias)
        alpha, c = f.slopes[:, 0], f.knots[:, 1]
        up, down = _relus(program, z, low, high, c), _relus(program, z, low, high, -c)
        z, up = program.padded(z), program.padded(up)
        rest = (1 - alpha)[:, None]
        y = Form(
            alpha[:, None] * z.matrix + rest * (up.matrix - down.matrix),
            alpha * z.constant + (1 - alpha) * (up.constant - down.constant - c),
        )
        low, high = (alpha * end + (1 - alpha) * np.clip(end, -c, c) for end in (low, high))
    goal = y.map(net.layers[-1].weight, net.layers[-1].bias)
    solution = program.maximise(goal, seconds=seconds, options=GAP_0)
    return solution.bound if solution.status == "optimal" else math.inf, time.monotonic() - start


def _relus(program: Program, z: Form, low: np.ndarray, high: np.ndarray, shift: np.ndarray) -> Form:
    """Return r = relu(z + shift) in [0, high]: r >= z + shift, r <= z + shift - low (1 - d), r <= high d."""
    low, high = np.minimum(low + shift, 0), np.maximum(high + shift, 0)
    r, d = program.columns(len(low)), program.columns(len(low), integer=True)
    z, found = program.padded(z), program.form(len(low))
    found.matrix[:, r] = np.diag(high)
    gap = Form(found.matrix - z.matrix, -z.constant - shift)
    program.limit(gap, 0.0, np.inf)
    upper = Form(gap.matrix.copy(), gap.constant + low)
    upper.matrix[:, d] -= np.diag(low)
    program.limit(upper, -np.inf, 0.0)
    on = Form(found.matrix.copy(), found.constant)
    on.matrix[:, d] -= np.diag(high)
    program.limit(on, -np.inf, 0.0)
    return found


def against_big_m() -> None:
    """Print times against the big-M form, their geometric mean, and what sampling misses."""
    print(
        f"{'network on [-2, 2]^n':28} {'maximum':>10} {'seconds':>8} {'big-M':>8} {'proved':>7} {'sampling misses':>16}"
    )
    ratios = []
    for inputs, widths in SHAPES:
        for seed in range(SEEDS):
            net, box = trained(inputs, widths, seed), [(-2.0, 2.0)] * inputs
            found = maximum(net, box, time_limit=PATIENCE)
            bound, seconds = big_m(net, np.array(box), PATIENCE)
            sampled = net(np.random.default_rng(0).uniform(-2, 2, (POINTS, inputs))).max()
            shown = f"{seconds:8.2f}" if bound < math.inf else f"{'> ' + format(PATIENCE, '.0f'):>8}"
            missed = 100 * (found.value - sampled) / abs(found.value)
            name = f"{inputs} -> {' -> '.join(map(str, widths))} -> 1, seed {seed}"
            proved = "yes" if found.proved else "no"
            print(
                f"{name:28} {found.value:>10.6f} {found.seconds:>8.2f} {shown} {proved:>7} {missed:>14.1f} %",
                flush=True,
            )
            if bound < math.inf and abs(bound - found.value) > 1e-5 * abs(bound):
                raise AssertionError(f"the two forms disagree: {found.value} and {bound}")
            ratios.append(found.seconds / seconds)
    show("time / big-M form, geometric mean", float(np.exp(np.mean(np.log(ratios)))), Bar(1 / 3))


def within_a_minute(count: int) -> None:
    """Print how many of some networks, 2 to 10 inputs and up to 2 x 32, are proved within the limit."""
    times, proved = [], 0
    rng = np.random.default_rng(0)
    for seed in range(count):
        inputs, depth = int(rng.integers(2, 11)), int(rng.integers(1, 3))
        net = trained(inputs, tuple(int(w) for w in rng.integers(8, 33, depth)), 1000 + seed)
        found = maximum(net, [(-2.0, 2.0)] * inputs, time_limit=LIMIT)
        proved += found.proved
        times.append(found.seconds)
    median, slowest = np.median(times), np.max(times)
    print(f"{count} networks: median {median:.2f} s, slowest {slowest:.1f} s")
    show(f"part of them proved within {LIMIT:.0f} s", proved / count, Bar(0.95, at_least=True))


def against_polygons(count: int) -> None:
    """Print how many of some networks of two inputs have another maximum by the program than by polygons."""
    wrong = sum(abs(one - two) > 1e-9 * max(1.0, abs(two)) for one, two in _both_ways(count))
    show(f"{count} networks of two inputs, disagreements with polygons beyond 1e-9", wrong, Bar(0.0))


def _both_ways(count: int) -> Iterator[tuple[float, float]]:
    box = ((-2.0, 2.0), (-2.0, 2.0))
    # a constraint that all points meet, so that the mixed-integer program answers and not the polygons
    everything = np.zeros((1, 2)), np.ones(1)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        widths = rng.integers(2, 11, rng.integers(1, 4))
        net = random_network(2, *(int(width) for width in widths), 1, spread=2.0, seed=seed)
        yield maximum(net, box, constraints=everything).value, float(polygons(net, box).values.max())


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    against_big_m()
    within_a_minute(NETWORKS)
    against_polygons(PLANES)


if __name__ == "__main__":
    main()
