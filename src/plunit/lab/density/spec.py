"""Densities learned by flows of LU layers and activations."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Density:
    """Flows trained by maximum likelihood.

    Attributes:
        data: names of data sets of the same number of features: toys of `plunit.invertible`, or tables of
            scikit-learn, of which a fifth of the rows, drawn anew for each seed, is the test set.
        features: their number of features.
        steps: steps of Adam, the step size falling to 0 along a half cosine.
        batch: points of each step: fresh ones of a toy, random rows of a table.
        lr: the step size at the start.
        blocks: (LU, activation), ended by LU.
        points: test points of a toy.
        half: half the side of the drawn square.
        cells: points of the drawn density along a side.
        samples: points drawn from the flow.
    """

    data: tuple[str, ...]
    features: int = 2
    steps: int = 3000
    batch: int = 512
    lr: float = 0.01
    blocks: int = 12
    points: int = 10_000
    half: float = 2.6
    cells: int = 96
    samples: int = 1000


SPECS = {
    "density": Density(("moons", "gaussians", "checkerboard", "pinwheel"), lr=0.02),
    # few rows: longer training, or more blocks, fits the rows and not the density
    "density-wine": Density(("wine",), features=13, steps=200, blocks=1),
    "density-cancer": Density(("breast_cancer",), features=30, steps=300, blocks=4),
}

TITLES = {
    "density": "Densities: four toys",
    "density-wine": "Densities: wine of scikit-learn",
    "density-cancer": "Densities: breast cancer of scikit-learn",
}

METHODS = {
    "gaussian": "Gaussian",
    "plain": "PLU, autograd",
    "flux": "PLU, corrected",
    "annealed": "PLU, annealed",
    "smooth": "SmoothPLU",
    "leaky": "leaky ReLU, corrected",
}
"""What a flow's activation is and how it is trained, in the place of an activation: the names of
`plunit.invertible.density` and a Gaussian of full covariance."""

ACTIVATIONS = tuple(METHODS)

SHORT, SEEDS, CHUNK = 300, 5, 5

SOURCES = (
    "invertible",
    "torch",
    "functional.py",
    "learned.py",
    "lab/density/spec.py",
    "lab/density/data.py",
    "lab/density/compute.py",
)
