"""Parts of `Flow.fit`: checks of its options, stored states, its result and its error."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor

from plunit.base.progress import bars
from plunit.invertible.batches import BatchRows, proportions
from plunit.invertible.bijections.smooth_plu import Annealing

if TYPE_CHECKING:
    from plunit.invertible.flow import Flow

_CHUNK = 4096  # validation points whose likelihood is computed at once


@dataclass(frozen=True, repr=False)
class Fitted:
    """The result of `Flow.fit`.

    Attributes:
        losses: the mean negative log-likelihood of each step's batch, in nats.
        validation: that of the validation points, by the number of steps done; empty without validation.
        step: the number of steps after which the flow had its parameters: the best by validation, else all.
    """

    losses: list[float]
    validation: dict[int, float]
    step: int

    def __repr__(self) -> str:
        return f"Fitted({len(self.losses)} steps, parameters of step {self.step}, loss {self.loss:.4g})"

    @property
    def loss(self) -> float:
        """The validation loss of the flow's parameters; without validation the loss of the last step."""
        return self.validation[self.step] if self.validation else self.losses[-1]


class Diverged(RuntimeError):
    """Raised if the likelihood becomes infinite or NaN; the flow keeps its best or last good parameters."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(
            f"training diverged at step {step}: the mean negative log-likelihood is {loss}. The flow has its last "
            f"good parameters; try a smaller lr, or remove outliers"
        )
        self.step = step


def check_options(anneal: Any, generator: Any, progress: Any, validation: Any, patience: Any) -> None:
    """Raise unless these options of `Flow.fit` are valid."""
    if torch.is_inference_mode_enabled():
        raise RuntimeError("fit needs gradients, which torch.inference_mode() forbids; call fit outside of it")
    if patience is not None and validation is None:
        raise ValueError(f"patience needs validation, got patience={patience} without it; pass points or a fraction")
    if not (anneal is None or isinstance(anneal, Annealing)):
        raise TypeError(f"anneal must be an Annealing such as RHO, got {anneal!r}")
    if not (generator is None or isinstance(generator, Generator)):
        raise TypeError(f"generator must be a torch.Generator or None, got {generator!r}")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False or a function of (steps done, loss), got {progress!r}")


@contextmanager
def step_bar(steps: int) -> Iterator[Callable[[int, float], None]]:
    """Yield a function of (steps done, loss) that advances a progress bar; without rich it does nothing."""
    try:
        shown = bars(importlib.import_module("rich.console").Console())
    except ImportError:
        yield lambda done, loss: None
        return
    with shown as bar:
        task = bar.add_task("", total=steps)
        yield lambda done, loss: bar.update(task, completed=done, description=f"{done}/{steps} NLL {loss:.3f}")


class FlowState:
    """A stored state of a flow: its bijection, and the values of its tensors."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        # one list serves all steps: without corners the sharp bijection has the same parameters, and its own buffers
        # are constant
        self.tensors = [tensor.detach() for tensor in (*flow.parameters(), *flow.buffers())]
        self.state = (flow.bijection, [tensor.clone() for tensor in self.tensors])
        self._spare = [tensor.clone() for tensor in self.tensors]

    def renew(self) -> None:
        """Store the current state of the flow. An interruption leaves the old state or the new one, never a mixture."""
        torch._foreach_copy_(self._spare, self.tensors)  # one call, because this runs at each step
        old, self.state = self.state, (self.flow.bijection, self._spare)
        self._spare = old[1]

    def restore(self) -> None:
        """Set the flow to the stored state."""
        self.flow.bijection, values = self.state
        torch._foreach_copy_(self.tensors, values)


@torch.no_grad()
def mean_nll(flow: Flow, rows: BatchRows, weights: Tensor | None) -> float:
    """Return the weighted mean negative log-likelihood of rows, in nats."""
    parts = zip(*(torch.split(part, _CHUNK) for part in rows), strict=True)
    values = torch.cat([-flow.log_prob(*part) for part in parts])
    return float(values.mean() if weights is None else values @ proportions(weights).to(values))
