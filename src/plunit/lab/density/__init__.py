"""Section 6: densities, for which an invertible network must also train well."""

from collections.abc import Callable, Iterator
from typing import Any

from plunit.lab.cell import Cell
from plunit.lab.density.claims import claims
from plunit.lab.density.compute import compute
from plunit.lab.density.data import table
from plunit.lab.density.figures import figures
from plunit.lab.density.spec import ACTIVATIONS, CHUNK, SEEDS, SHORT, SPECS, TITLES
from plunit.lab.density.spec import METHODS as CHOICES
from plunit.lab.results import Results


def prepare(report: Callable[[str], object]) -> None:
    """See that the tables are there."""
    table("wine")


def cost(cell: Cell) -> float:
    """Estimate the work, in units of an ensemble's update of a parameter."""
    return 1e5 if cell.activation == "gaussian" else 1e5 * float(cell.spec.steps * cell.spec.blocks)


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each method, data set and seed."""
    for name, method, arrays in results.items():
        for d, data in enumerate(SPECS[name].data) if name in SPECS else ():
            for i, seed in enumerate(arrays["seed"]):
                row = {"experiment": name, "activation": method, "seed": int(seed), "data": data}
                yield row | {
                    "nll": float(arrays["nll"][d, i]),
                    "steps": arrays["loss"].shape[1] if "loss" in arrays else 0,
                }
