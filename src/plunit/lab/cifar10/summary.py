"""The rows of summary.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plunit.lab.cifar10.curves import curve
from plunit.lab.cifar10.spec import SPECS
from plunit.lab.results import Results


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each experiment, activation and seed."""
    for name, activation, arrays in results.items():
        if name not in SPECS:
            continue
        found = curve(arrays)
        for i, seed in enumerate(arrays["seed"]):
            yield {
                "experiment": name,
                "activation": activation,
                "seed": int(seed),
                "final_loss": float(found.loss[-1, i]),
                "steps": len(arrays["loss"]),
                "test_loss": float(found.test_loss[-1, i]),
                "test_accuracy": float(found.test_accuracy[-1, i]),
                "seconds": float(found.seconds[i]),
            }
