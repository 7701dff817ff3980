"""The rows of summary.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plunit.lab.results import Results
from plunit.lab.shape.spec import SPECS


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each experiment, seed, alpha and c."""
    for name, activation, arrays in results.items():
        if name not in SPECS:
            continue
        columns = (arrays[key].tolist() for key in ("seed", "alpha", "c", "final_loss"))
        for seed, alpha, c, loss in zip(*columns, strict=True):
            row = {"experiment": name, "activation": activation, "seed": seed}
            yield row | {"alpha": round(alpha, 6), "c": round(c, 6), "final_loss": loss}
