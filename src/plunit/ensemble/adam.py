"""Adam's step, its schedule, and validation with patience, in NumPy; ensembles and densities share them.

Adam (Kingma and Ba, 2015; docs/glossary.md) has beta_1 = 0.9, beta_2 = 0.999 and epsilon = 1e-8. The compiled programs
take the same steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array

ADAMS = ("pytorch", "tensorflow")
"""The variants of Adam; see `corrections`."""


def corrections(t: Any, adam: str = "pytorch") -> tuple[Any, Any]:
    """Return the divisor of Adam's mean and the factor of the root of its square at steps t = 1, 2, ...

    PyTorch adds epsilon to the corrected root, sqrt(square / (1 - 0.999^t)), as in the algorithm of Adam's paper;
    TensorFlow adds epsilon to sqrt(square) and corrects both moments by the step size.
    """
    mean, root = 1 - 0.9**t, np.sqrt(1 - 0.999**t)
    return (mean, 1 / root) if adam == "pytorch" else (mean / root, np.ones_like(root))


def adam_step(gradient: Array, mean: Array, square: Array, rate: Any, root: Any) -> Array:
    """Update both moments in place, and return the change to subtract from the parameters.

    `rate` is the step size divided by the first number of `corrections`, and `root` is the second.
    """
    dtype = mean.dtype.type
    mean += (gradient - mean) * dtype(0.1)
    square *= dtype(0.999)
    square += gradient * gradient * dtype(0.001)
    return np.asarray(mean / (np.sqrt(square) * dtype(root) + dtype(1e-8)) * rate)


def half_cosine(steps: int) -> Array:
    """Return the factor of the step size at each step, a half cosine from 1 to almost 0.

    >>> half_cosine(4).round(3)
    array([1.   , 0.854, 0.5  , 0.146])
    """
    return np.asarray(0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps)))


def judge_losses(
    loss: Any, best_loss: Any, mark: Any, waited: Any, patience: float = math.inf, tolerance: float = 0.0
) -> tuple[Any, Any, Any]:
    """Return for each member whether its validation loss is its lowest, whether it is progress, and the new `waited`.

    A loss is progress if it is below the mark, the last loss that was progress, by more than the tolerance. `waited`
    counts the validations since then; a member stops when it reaches `patience`.

    >>> judge_losses(np.array([2.0, 0.95]), np.array([3.0, 1.0]), np.array([3.0, 1.0]), np.array([4, 4]), tolerance=0.1)
    (array([ True,  True]), array([ True, False]), array([0, 5]))
    """
    over = np.asarray(waited) >= patience
    better = (loss < best_loss) & ~over
    progress = (loss < mark - tolerance) & ~over
    return better, progress, np.where(progress, 0, waited + ~over)


def whole_looks(patience: float) -> int:
    """Return the number of validations without progress after which a member stops, at most 2^31 - 1.

    >>> whole_looks(3), whole_looks(2.5), whole_looks(math.inf)
    (3, 3, 2147483647)
    """
    return math.ceil(min(patience, 2**31 - 1))
