"""The speeds on README.md: PLU in PyTorch, networks trained at once, and a proved maximum.

`python -m benchmarks speed --store` writes them to results/benchmarks.json, and `python tools/readme.py` copies them
from there. It needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from benchmarks import ensemble, op, proofs
from benchmarks.timing import STORED, show, store
from plunit.pieces import maximum
from plunit.torch import PLU

ELEMENTS = 1_000_000
DTYPES = torch.float32, torch.bfloat16
PATIENCE = 10.0
PAIRS = 7


def activation() -> dict[str, float]:
    """Return the time of PLU / ReLU, forward and backward, by dtype."""
    ratios = {str(dtype).removeprefix("torch."): op.both(PLU(), nn.ReLU(), ELEMENTS, dtype=dtype) for dtype in DTYPES}
    return {"elements": ELEMENTS, **ratios}


def training(peer: Callable[[str], float]) -> dict[str, float]:
    """Return the networks trained per second, all at once / by a peer: the median of pairs of timings."""
    ratios = [ensemble.ours("plu") / peer("plu") for _ in range(PAIRS)]
    return {"ratio": statistics.median(ratios), "least": min(ratios), "largest": max(ratios)}


def proof() -> dict[str, float]:
    """Return the time of a mixed-integer program / ours, geometric mean; a stopped one counts with its time limit."""
    ratios, stopped = [], 0
    torch.set_num_threads(1)
    for inputs, widths in proofs.SHAPES:
        for seed in range(proofs.SEEDS):
            net, box = proofs.trained(inputs, widths, seed), [(-2.0, 2.0)] * inputs
            found = maximum(net, box, time_limit=proofs.LIMIT)
            bound, seconds = proofs.big_m(net, np.array(box), PATIENCE)
            if not found.proved or (bound < math.inf and abs(bound - found.value) > 1e-5 * abs(bound)):
                raise AssertionError(f"{found}, and the mixed-integer program's bound is {bound}")
            ratios.append(seconds / found.seconds)
            stopped += bool(bound == math.inf)
    mean = float(np.exp(np.mean(np.log(ratios))))
    return {"ratio": mean, "networks": len(ratios), "stopped": stopped, "patience": PATIENCE}


def main(options: Sequence[str] = ()) -> None:
    """Print the speeds, and store them if asked to."""
    parser = argparse.ArgumentParser("python -m benchmarks speed", description=__doc__)
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}")
    chosen = parser.parse_args(options)
    torch.set_num_threads(2)
    found: dict[str, dict[str, float]] = {
        "op": activation(),
        "loop": training(ensemble.plain_loop),
        "vmap": training(ensemble.jax_scan),
        "proof": proof(),
    }
    for dtype in ("float32", "bfloat16"):
        show(f"time of PLU / ReLU, forward and backward, {ELEMENTS:,} elements, {dtype}", found["op"][dtype])
    for peer, words in (("loop", "one at a time in PyTorch"), ("vmap", "jax.vmap")):
        show(f"networks trained per second, {ensemble.SEEDS:,} at once / {words}", found[peer]["ratio"])
    show("a proved maximum: time of a mixed-integer program / ours, at least", found["proof"]["ratio"])
    if chosen.store:
        store(STORED, "speed", options, {"networks": ensemble.SEEDS, **found})


if __name__ == "__main__":
    main()
