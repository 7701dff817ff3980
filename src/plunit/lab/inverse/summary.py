"""The rows of summary.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plunit.lab.inverse.spec import SPECS
from plunit.lab.results import Results


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each activation, kind of layer, precision, depth and seed."""
    for name, activation, arrays in results.items():
        if name not in SPECS:
            continue
        spec = SPECS[name]
        for i, linear in enumerate(spec.linears):
            for j, dtype in enumerate(spec.dtypes):
                for k, depth in enumerate(spec.depths):
                    for s, seed in enumerate(arrays["seed"]):
                        row = {"experiment": name, "activation": activation, "seed": int(seed), "depth": depth}
                        row |= {"linear": linear, "dtype": dtype}
                        yield row | {key: float(arrays[key][i, j, k, s]) for key in ("error", "lost", "bound")}
