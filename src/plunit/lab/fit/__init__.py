"""Sections 2-4: the sine, the parametric curve and the hyperbolic paraboloid, over many paired seeds."""

from plunit.ensemble import ACTIVATIONS as CHOICES
from plunit.ensemble import Network
from plunit.lab.cell import Cell, chunks
from plunit.lab.fit.claims import claims
from plunit.lab.fit.compute import compute
from plunit.lab.fit.figures import figures
from plunit.lab.fit.spec import ACTIVATIONS, SPECS, TITLES, Fit
from plunit.lab.fit.summary import rows

_CHUNK = 256


def cells(name: str, activations: tuple[str, ...], seeds: int, engine: str) -> list[Cell]:
    """Return the cells that cover seeds 0, ..., seeds - 1."""
    return chunks(name, SPECS[name], activations, seeds, _CHUNK, engine)


def cost(cell: Cell) -> float:
    """Estimate the work, in updates of a parameter; drawing a batch costs about four times as much."""
    spec: Fit = cell.spec
    updates = (cell.last - cell.first) * spec.steps * Network(spec.widths).rows
    return updates * 5 if spec.batch else updates
