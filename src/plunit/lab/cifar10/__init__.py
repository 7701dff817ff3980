"""Section 5: the paper's convolutional network on CIFAR-10, with four activations and more."""

from collections.abc import Callable

from plunit.lab.cell import Cell
from plunit.lab.cifar10.claims import claims
from plunit.lab.cifar10.compute import compute
from plunit.lab.cifar10.figures import figures
from plunit.lab.cifar10.network import CHOICES
from plunit.lab.cifar10.spec import ACTIVATIONS, CHUNK, SEEDS, SHORT, SPECS, TITLES, Cifar10
from plunit.lab.cifar10.summary import rows
from plunit.lab.data import cifar10


def prepare(report: Callable[[str], object]) -> None:
    """Fetch the data set unless it is there."""
    cifar10.fetch(cifar10.folder(), report)


def cost(cell: Cell) -> float:
    """Estimate the work, in units of an ensemble's update of a parameter."""
    spec: Cifar10 = cell.spec
    return 1e6 * spec.steps
