"""The three numbers on README.md: PLU in PyTorch, networks trained at once, and a proved maximum.

`python -m benchmarks speed --store` writes them to results/benchmarks.json, from which `python tools/readme.py` takes
them.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from benchmarks import ensemble, op, proofs
from benchmarks.timing import STORED, show, store
from plunit.pieces import maximum
from plunit.torch import PLU

ELEMENTS = 1_000_000
PATIENCE = 10.0
PAIRS = 7


def training() -> dict[str, float]:
    """Return networks trained per second, at once / one after the other in PyTorch: median of pairs of timings."""
    ratios = [ensemble.ours("plu") / ensemble.plain_loop("plu") for _ in range(PAIRS)]
    return {
        "ratio": statistics.median(ratios),
        "least": min(ratios),
        "largest": max(ratios),
        "networks": ensemble.SEEDS,
    }


def proof() -> dict[str, float]:
    """Return the time of a mixed-integer program / ours, geometric mean; one that is stopped counts until then."""
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
    """Print the three numbers, and store them if asked to."""
    parser = argparse.ArgumentParser("python -m benchmarks speed", description=__doc__)
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}")
    chosen = parser.parse_args(options)
    torch.set_num_threads(2)
    found = {
        "op": {"ratio": op.both(PLU(), nn.ReLU(), ELEMENTS), "elements": ELEMENTS},
        "ensemble": training(),
        "proof": proof(),
    }
    show(f"time of PLU / ReLU, forward and backward, {ELEMENTS:,} elements", found["op"]["ratio"])
    show(f"networks trained per second, {ensemble.SEEDS:,} at once / one at a time", found["ensemble"]["ratio"])
    show("a proved maximum: time of a mixed-integer program / ours, at least", found["proof"]["ratio"])
    if chosen.store:
        store(STORED, "speed", options, found)


if __name__ == "__main__":
    main()
