"""The rows of summary.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plunit.lab.depth.spec import SPECS
from plunit.lab.results import Results


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each experiment, activation, depth and seed."""
    for name, activation, arrays in results.items():
        for depth, norms in zip(SPECS[name].depths, arrays["gradient"], strict=True) if name in SPECS else ():
            for seed, norm in zip(arrays["seed"], norms, strict=True):
                row = {"experiment": name, "activation": activation, "seed": int(seed)}
                yield row | {"depth": depth, "gradient_norm": float(norm)}
