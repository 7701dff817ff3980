"""The curves of a run: training loss in windows of steps, and the test set at a few steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.lab.claims import Column
from plunit.lab.store import Arrays

WINDOW = 50


@dataclass(frozen=True)
class Curve:
    """What is kept of the runs of one activation, seeds on the last axis.

    Attributes:
        window: steps in a window.
        loss: mean training loss of each window [windows, seeds].
        test_step: steps after which the test set was evaluated [tests].
        test_loss: mean cross-entropy then [tests, seeds].
        test_accuracy: share of right answers then [tests, seeds].
        seconds: time of training and tests [seeds].
    """

    window: int
    loss: Column
    test_step: Column
    test_loss: Column
    test_accuracy: Column
    seconds: Column

    @property
    def steps(self) -> int:
        """Number of steps in all windows."""
        return self.window * len(self.loss)

    def at(self, step: int) -> Column:
        """Return the mean loss of the window that ends at a step [seeds]."""
        loss: Column = self.loss[step // self.window - 1]
        return loss

    def area(self, step: int) -> Column:
        """Return the mean loss of all steps up to one: the area under the curve, divided by its length [seeds]."""
        area: Column = np.mean(self.loss[: step // self.window], axis=0)
        return area


def curve(arrays: Arrays, window: int = WINDOW) -> Curve:
    """Reduce the arrays of `compute` to a curve; steps beyond the last whole window are left out.

    >>> steps = np.arange(120.0)[:, None]
    >>> arrays = {"loss": steps, "test_step": np.array([[120]]), "seconds": np.array([1.0])}
    >>> found = curve(arrays | {"test_loss": np.array([[2.0]]), "test_accuracy": np.array([[0.5]])})
    >>> found.steps, found.at(50), found.area(100)
    (100, array([24.5]), array([49.5]))
    """
    window = min(window, len(arrays["loss"]))
    count = len(arrays["loss"]) // window
    loss = arrays["loss"][: count * window].astype(np.float64)
    return Curve(
        window,
        loss.reshape(count, window, -1).mean(1),
        arrays["test_step"][:, 0],
        arrays["test_loss"],
        arrays["test_accuracy"],
        arrays["seconds"],
    )
