"""Section 6: which activations have an inverse, and round trips through networks of them."""

from plunit.lab.cell import Cell, chunks
from plunit.lab.inverse.claims import claims
from plunit.lab.inverse.compute import FUNCTIONS as CHOICES
from plunit.lab.inverse.compute import compute
from plunit.lab.inverse.figures import figures
from plunit.lab.inverse.spec import ACTIVATIONS, SPECS, TITLES
from plunit.lab.inverse.summary import rows


def cells(name: str, activations: tuple[str, ...], seeds: int, engine: str) -> list[Cell]:
    """Return the cells of at most five seeds, enough for a median; the networks are PyTorch's under either engine."""
    return chunks(name, SPECS[name], activations, min(seeds, 5), 1, "torch")


def cost(cell: Cell) -> float:
    """Estimate the work, in units of an ensemble's update of a parameter: a constant, most of it PyTorch's overhead."""
    return 1e8
