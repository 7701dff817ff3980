"""The rows of summary.csv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plunit.lab.fit.spec import SPECS
from plunit.lab.results import Results


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each experiment, activation and seed; alpha and c are the means over layers if learned."""
    for name, activation, arrays in results.items():
        if name not in SPECS:
            continue
        for i, seed in enumerate(arrays["seed"]):
            row = {"experiment": name, "activation": activation, "seed": int(seed)}
            if activation == "plu":
                row |= {"alpha": SPECS[name].alpha, "c": SPECS[name].c}
            elif "alpha" in arrays:
                row |= {key: float(arrays[key][:, i].mean()) for key in ("alpha", "c")}
            if "trained_pieces" in arrays:
                row |= {key: int(arrays[f"trained_{key}"][i]) for key in ("pieces", "patterns")}
            yield row | {"final_loss": float(arrays["final_loss"][i]), "dead_units": int(arrays["dead"][i])}
