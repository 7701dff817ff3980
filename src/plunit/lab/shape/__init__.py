"""The choice of alpha and c, for the sine and the parametric curve."""

from plunit.ensemble import ACTIVATIONS as CHOICES
from plunit.ensemble import Network
from plunit.lab.cell import Cell, chunks
from plunit.lab.shape.claims import claims
from plunit.lab.shape.compute import compute
from plunit.lab.shape.figures import figures
from plunit.lab.shape.spec import ACTIVATIONS, SPECS, TITLES, ShapeMap
from plunit.lab.shape.summary import rows

_CHUNK = 4


def cells(name: str, activations: tuple[str, ...], seeds: int, engine: str) -> list[Cell]:
    """Return the cells of an eighth of the seeds, at most 32: enough for a median at each point of the grid."""
    return chunks(name, SPECS[name], activations, min(max(seeds // 8, 1), 32), _CHUNK, engine)


def cost(cell: Cell) -> float:
    """Estimate the work, in updates of a parameter."""
    spec: ShapeMap = cell.spec
    grid = len(spec.alphas) * len(spec.cs)
    return (cell.last - cell.first) * grid * spec.fit.steps * Network(spec.fit.widths).rows
