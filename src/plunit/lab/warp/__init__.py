"""Section 6: an invertible PLU network learns a map of the plane, and with it the inverse."""

from collections.abc import Callable, Iterator
from typing import Any

from plunit.lab.cell import Cell
from plunit.lab.claims import Claim, Range, measure, median
from plunit.lab.results import Results
from plunit.lab.warp.compute import CHOICES, compute
from plunit.lab.warp.figures import figures
from plunit.lab.warp.spec import ACTIVATIONS, CHUNK, SEEDS, SHORT, SPECS, TITLES


def prepare(report: Callable[[str], object]) -> None:
    """Nothing is needed: the points are drawn."""


def cost(cell: Cell) -> float:
    """Estimate the work, in units of an ensemble's update of a parameter."""
    return 1e6 * float(cell.spec.steps)


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each activation and seed."""
    for name, activation, arrays in results.items():
        for i, seed in enumerate(arrays["seed"]) if name in SPECS else ():
            row = {"experiment": name, "activation": activation, "seed": int(seed), "steps": len(arrays["loss"])}
            yield row | {key: float(arrays[key][i]) for key in ("forward_error", "inverse_error", "round_trip")}


def claims(results: Results) -> list[Claim]:
    """Return how well the inverse is learned by learning the map, if all steps of the spec were made."""
    found = []
    for name, spec in SPECS.items():
        if results.has(name, "plu") and len(results[name, "plu"]["loss"]) >= spec.steps:
            arrays = results[name, "plu"]
            found.append(
                measure(
                    name,
                    "ours",
                    f"An invertible PLU network that learns a map learns its inverse: {len(arrays['loss']):,} steps.",
                    "median root mean square error of the inverse, on a square of side 4",
                    median,
                    arrays["inverse_error"],
                    claimed=Range(high=0.1),
                    weaker=Range(high=0.3),
                )
            )
    return found
