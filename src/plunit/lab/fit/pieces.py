"""Count the pieces of trained networks: on the interval of their data, or on its square."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.ensemble import MLP, initial
from plunit.ensemble.arrays import Array
from plunit.ensemble.members import PIECEWISE, exact
from plunit.lab.cell import Arrays
from plunit.pieces import Counts, cell_counts, counts
from plunit.pieces import Network as Exact

COURSE = 128
"""Pieces over training steps are counted for that many seeds, the first ones."""

_BLOCK = 512
_LARGEST = 1e20


def counted(spec: Any, network: MLP, arrays: Arrays) -> Arrays:
    """Return the counts of trained networks, nothing if their activation is not piecewise linear.

    - initial_pieces, trained_pieces, random_pieces [S]: functionally distinct pieces before and after training, and
      with the same initial weights but biases N(0, 1) rather than 0; *_patterns [S]: activation patterns, likewise;
    - course [steps, S'], for the seeds S' below `COURSE`: pieces after each of `steps`.
    """
    if network.activation not in PIECEWISE:
        return {}
    start, random = _starts(spec, network, arrays)
    stages = {"initial": start, "random": random, "trained": arrays["theta"]}
    found = {stage: count(spec, network, theta) for stage, theta in stages.items()}
    first = int((arrays["seed"] < COURSE).sum())
    between = [count(spec, network, theta[:, :first]).pieces for theta in arrays["checkpoints"]]
    course = [found["initial"].pieces[:first], *between, found["trained"].pieces[:first]]
    numbers = {f"{stage}_pieces": both.pieces for stage, both in found.items()}
    patterns = {f"{stage}_patterns": both.patterns for stage, both in found.items()}
    return {**numbers, **patterns, "course": np.stack(course)}


def steps(spec: Any) -> list[int]:
    """Return the steps after which pieces are counted: before the first, at the checkpoints, after the last."""
    return [0, *(step for step in spec.checkpoints if step < spec.steps), spec.steps]


def count(spec: Any, network: MLP, theta: Array) -> Counts:
    """Count patterns and pieces of each member [S] on the domain of the spec; 0 where training diverged."""
    both = np.zeros((2, theta.shape[1]), dtype=np.int64)
    # training diverged if a weight is NaN, which compares as false, or larger than this
    sound = np.flatnonzero((np.abs(theta) < _LARGEST).all(0))
    for first in range(0, len(sound), _BLOCK):
        members = sound[first : first + _BLOCK]
        both[:, members] = _count(spec, exact(network, theta[:, members], spec.alpha, spec.c))
    return Counts(*both)


def _count(spec: Any, net: Exact) -> Counts:
    domain = spec.low, spec.high
    return counts(net, *domain) if net.inputs == 1 else cell_counts(net, (domain, domain))


def _starts(spec: Any, network: MLP, arrays: Arrays) -> tuple[Array, Array]:
    """Draw the initial weights again, and a copy of them with biases N(0, 1), the same for every activation."""
    generators = [np.random.default_rng(seed) for seed in arrays["seed"]]
    start = initial(network, generators, alpha=spec.alpha, c=spec.c)
    random = start.copy()
    for _, bias in network.layers(random):
        draws = [generator.standard_normal(len(bias), dtype=np.float32) for generator in generators]
        bias[...] = np.stack(draws, axis=-1)
    return start, random
