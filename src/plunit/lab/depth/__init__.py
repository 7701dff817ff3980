"""Section 7: gradients of networks of depths 2 to 64."""

from plunit.ensemble import ACTIVATIONS as CHOICES
from plunit.lab.cell import Cell, chunks
from plunit.lab.depth.claims import claims
from plunit.lab.depth.compute import compute
from plunit.lab.depth.figures import figures
from plunit.lab.depth.spec import ACTIVATIONS, SPECS, TITLES
from plunit.lab.depth.summary import rows

_CHUNK = 256


def cells(name: str, activations: tuple[str, ...], seeds: int, engine: str) -> list[Cell]:
    """Return the cells that cover seeds 0, ..., seeds - 1; gradients are PyTorch's own under either engine."""
    return chunks(name, SPECS[name], activations, seeds, _CHUNK, "eager")


def cost(cell: Cell) -> float:
    """Estimate the work, in units of an ensemble's update of a parameter: a constant, most of it PyTorch's overhead."""
    return 2e7
