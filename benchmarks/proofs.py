"""Proofs: maxima against a mixed-integer program, a hundred networks, polygons, and the instances of VNN-COMP.

`python -m benchmarks proofs --vnn FOLDER` answers the instances of a folder with networks, properties and a table
answers.csv (folder, network, property, answer, ...); `--marabou 20` answers those of ACAS Xu by maraboupy as well, in
the same run, for at most 20 s each. `--only TEXT` takes the networks whose names contain the text.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.pieces import random_network
from benchmarks.timing import Bar, show
from plunit.pieces import Network, holds, lipschitz, load, load_vnnlib, maximum, polygons, to_relu
from plunit.pieces.formats.nnet_text import box_of
from plunit.pieces.proofs.properties import Property
from plunit.torch import PLU, to_network

SHAPES = ((2, (32, 32, 32)), (5, (32, 32)), (10, (16, 16)), (5, (64, 64)), (3, (64, 64, 64)))
SEEDS = 2
LIMIT = 60.0
PATIENCE = 20.0
POINTS = 200_000
NETWORKS = 100
PLANES = 1000
VNN_LIMIT = 116.0
"""Seconds for an instance, as for ACAS Xu in VNN-COMP."""


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
    """Maximise by HiGHS, through SciPy: each ReLU of the network as ReLUs has a binary d and its big-M rows.

    r >= 0, r >= z, r <= z - low (1 - d), r <= high d. Return the bound and the seconds.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    start = time.monotonic()
    low, high = box.T
    blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    relus = to_relu(net)
    for layer in relus.layers[:-1]:
        up, down = np.maximum(layer.weight, 0), np.minimum(layer.weight, 0)
        bottom, top = up @ low + down @ high + layer.bias, up @ high + down @ low + layer.bias
        blocks.append((layer.weight, layer.bias, np.minimum(bottom, 0), np.maximum(top, 0)))
        low, high = np.maximum(bottom, 0), np.maximum(top, 0)
    widths = [len(box), *(len(bias) for _, bias, _, _ in blocks)]
    starts = np.cumsum([0, *widths])
    columns = starts[-1] + sum(widths[1:])
    rows, limits, binary = [], [], starts[-1]
    for i, (weight, bias, bottom, top) in enumerate(blocks):
        r, d, before = (
            slice(a, a + n) for a, n in ((starts[i + 1], len(bias)), (binary, len(bias)), (starts[i], widths[i]))
        )
        binary += len(bias)
        one, z = np.eye(len(bias)), np.zeros((3, len(bias), columns))
        z[0][:, r], z[0][:, before] = -one, weight
        z[1][:, r], z[1][:, before], z[1][:, d] = one, -weight, -np.diag(bottom)
        z[2][:, r], z[2][:, d] = one, -np.diag(top)
        rows.append(z.reshape(-1, columns))
        limits.append(np.concatenate([-bias, bias - bottom, np.zeros(len(bias))]))
    last, goal = relus.layers[-1], np.zeros(columns)
    goal[starts[-2] : starts[-1]] = -last.weight[0]
    ends = np.concatenate([box[:, 1], *(top for _, _, _, top in blocks), np.ones(columns - starts[-1])])
    begin = np.concatenate([box[:, 0], np.zeros(columns - len(box))])
    found = milp(
        goal,
        constraints=LinearConstraint(np.concatenate(rows), -np.inf, np.concatenate(limits)),
        bounds=Bounds(begin, ends),
        integrality=np.arange(columns) >= starts[-1],
        options={"time_limit": seconds, "mip_rel_gap": 1e-9},
    )
    return -found.fun + last.bias[0] if found.status == 0 else math.inf, time.monotonic() - start


def maxima() -> None:
    """Print times of `maximum` and `lipschitz`, those of the mixed-integer program, and what sampling misses."""
    columns = f"{'maximum':>10} {'seconds':>8} {'HiGHS':>8} {'sampling misses':>16} {'Lipschitz':>10} {'seconds':>8}"
    print(f"{'network on [-2, 2]^n':28} {columns}")
    ratios, proved = [], []
    for inputs, widths in SHAPES:
        for seed in range(SEEDS):
            net, box = trained(inputs, widths, seed), [(-2.0, 2.0)] * inputs
            found, steep = maximum(net, box, time_limit=LIMIT), lipschitz(net, box, time_limit=LIMIT)
            bound, seconds = big_m(net, np.array(box), PATIENCE)
            sampled = net(np.random.default_rng(0).uniform(-2, 2, (POINTS, inputs))).max()
            shown = f"{seconds:8.2f}" if bound < math.inf else f"{'> ' + format(PATIENCE, '.0f'):>8}"
            missed = 100 * (found.value - sampled) / abs(found.value)
            name = f"{inputs} -> {' -> '.join(map(str, widths))} -> 1, seed {seed}"
            print(
                f"{name:28} {found.value:>10.6f} {found.seconds:>8.2f} {shown} {missed:>14.1f} % {steep.value:>10.4f} "
                f"{steep.seconds:>8.2f}",
                flush=True,
            )
            if bound < math.inf and abs(bound - found.value) > 1e-5 * abs(bound):
                raise AssertionError(f"the two programs disagree: {found.value} and {bound}")
            ratios.append(found.seconds / seconds)
            proved.append(found.proved and steep.proved)
    show("time / mixed-integer program, geometric mean", float(np.exp(np.mean(np.log(ratios)))), Bar(1 / 5))
    show("part of maxima and Lipschitz constants that is proved", float(np.mean(proved)), Bar(1.0, at_least=True))


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
    print(f"{count} networks: median {np.median(times):.3f} s, slowest {np.max(times):.2f} s")
    show(f"part of them proved within {LIMIT:.0f} s", proved / count, Bar(1.0, at_least=True))


def against_polygons(count: int) -> None:
    """Print how many of some networks of two inputs have another maximum than their polygons."""
    box, wrong = ((-2.0, 2.0), (-2.0, 2.0)), 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        widths = rng.integers(2, 11, rng.integers(1, 4))
        net = random_network(2, *(int(width) for width in widths), 1, spread=2.0, seed=seed)
        exact, found = float(polygons(net, box).values.max()), maximum(net, box)
        wrong += not (found.proved and abs(found.value - exact) <= 1e-9 * max(1.0, abs(exact)))
    show(f"{count} networks of two inputs, disagreements with polygons beyond 1e-9", wrong, Bar(0.0))


def instances(folder: Path, limit: float, patience: float, only: str) -> None:
    """Answer the instances of a folder; print a line for each that is slow, open or wrong, and a table."""
    groups: dict[str, list[tuple[float, bool, bool]]] = defaultdict(list)
    pairs: list[tuple[float, float, bool]] = []
    with (folder / "answers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if only in row["network"]]
    first = folder / rows[0]["folder"] / rows[0]["network"]
    holds(load(first), _property(first, rows[0]["property"]), time_limit=1)  # loads what is imported and compiled
    for row in rows:
        path = folder / row["folder"] / row["network"]
        start = time.monotonic()
        asked = _property(path, row["property"])
        found = holds(load(path), asked, time_limit=limit)
        seconds, said = time.monotonic() - start, {"proved": "unsat", "refuted": "sat"}.get(found.status, "unknown")
        known = bool(row["answer"])
        groups[row["folder"]].append((seconds, said != "unknown", known and said not in ("unknown", row["answer"])))
        if seconds > 1 or said != row["answer"]:
            print(f"{row['network']} {row['property']}: {said} in {seconds:.2f} s, known {row['answer'] or 'nothing'}")
        if patience and row["folder"] == "acasxu":
            answer, other = _marabou(path, path.parent / row["property"], patience)
            print(f"{row['network']} {row['property']}: {seconds:.2f} s, Marabou {answer} in {other:.2f} s", flush=True)
            if answer in ("sat", "unsat") and answer != row["answer"]:
                print(f"Marabou is wrong: known {row['answer']}")
            pairs.append((seconds, other, answer in ("sat", "unsat")))
    print(f"{'folder':12} {'instances':>9} {'decided':>8} {'wrong':>6} {'median s':>9} {'longest s':>10} {'sum s':>8}")
    for name, found in groups.items():
        times = [seconds for seconds, _, _ in found]
        decided, wrong = sum(one for _, one, _ in found), sum(one for _, _, one in found)
        print(
            f"{name:12} {len(found):>9} {decided:>8} {wrong:>6} {np.median(times):>9.3f} {max(times):>10.2f} "
            f"{sum(times):>8.1f}"
        )
    if pairs:
        decided = np.array([pair[:2] for pair in pairs if pair[2]]).reshape(-1, 2).sum(axis=0)
        count = sum(pair[2] for pair in pairs)
        print(f"ACAS Xu, {count} that Marabou decides: {decided[0]:.1f} and {decided[1]:.1f} s")
        show("sum of times / Marabou's, where it decides", decided[0] / decided[1], Bar(1 / 20))


def _property(network: Path, name: str) -> Property:
    """Return the property of a file; where there is none that of coav, y_0 <= 0 on the box of the .nnet file."""
    if name.endswith(".vnnlib"):
        return load_vnnlib(network.parent / name)
    return Property.never(box_of(network), [([[1.0]], [0.0])])


def _marabou(network: Path, property: Path, limit: float) -> tuple[str, float]:
    """Return Marabou's answer to an instance, and its seconds."""
    from maraboupy import Marabou

    start = time.monotonic()
    options = Marabou.createOptions(verbosity=0, timeoutInSeconds=int(limit))
    answer, _, _ = Marabou.read_onnx(str(network)).solve(propertyFilename=str(property), verbose=False, options=options)
    return answer, time.monotonic() - start


def main(options: Sequence[str] = ()) -> None:
    """Print the tables, or those of a folder of instances."""
    parser = argparse.ArgumentParser("python -m benchmarks proofs", description=__doc__)
    parser.add_argument("--vnn", type=Path, help="a folder of networks and properties with an answers.csv")
    parser.add_argument("--seconds", type=float, default=VNN_LIMIT, help="time limit of an instance")
    parser.add_argument("--marabou", type=float, default=0.0, help="answer ACAS Xu by maraboupy, too: its seconds")
    parser.add_argument("--only", default="", help="a text in the names of networks")
    chosen = parser.parse_args(options)
    torch.set_num_threads(1)
    if chosen.vnn is not None:
        instances(chosen.vnn, chosen.seconds, chosen.marabou, chosen.only)
        return
    maxima()
    within_a_minute(NETWORKS)
    against_polygons(PLANES)


if __name__ == "__main__":
    main()
