"""What `Flow.fit` is made of: annealing, states to go back to, its result and its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn

from plunit.invertible.batches import Rows, shares
from plunit.invertible.bijections.elementwise import raw_of_rho

if TYPE_CHECKING:
    from plunit.invertible.flow import Flow

_CHUNK = 4096  # points whose likelihood is computed at once when nothing is learned from them


@dataclass(frozen=True)
class Annealing:
    """rho of `SmoothPLU` falls geometrically from `start` to `end` over the part `until` of training.

    From there on the corners are gone, and what is left of the steps trains the sharp network.

    Args:
        start: rho at the first step.
        end: rho just before the part `until` is over.
        until: in (0, 1].
    """

    start: float = 0.9
    end: float = 0.02
    until: float = 0.7

    def __post_init__(self) -> None:
        for rho in (self.start, self.end):
            raw_of_rho(rho)
        if not 0 < self.until <= 1:
            raise ValueError(f"until must lie in (0, 1], got {self.until}; the default is 0.7")

    def rho(self, step: int, steps: int) -> float | None:
        """Return rho at a step, counted from 0; None when the corners are gone.

        >>> [round(RHO.rho(step, 101), 3) for step in (0, 35, 69)], RHO.rho(70, 101), RHO.rho(0, 1)
        ([0.9, 0.134, 0.021], None, None)
        """
        passed = step / (steps - 1) if steps > 1 else 1.0
        return None if passed >= self.until else float(self.start * (self.end / self.start) ** (passed / self.until))

    def first_sharp_step(self, steps: int) -> int:
        """Return the first step without corners."""
        return next(step for step in range(steps) if self.rho(step, steps) is None)

    def shrink_corners(self, model: Any, step: int, steps: int) -> bool:
        """Set rho of a step in a model, or remove the corners; return whether any are left.

        `named_buffers()` of the model has its roundings, which may be stacked as for torch.func.vmap; `sharpen()`
        removes all corners and leaves the parameters the same tensors, so that an optimiser can continue.
        """
        rho = self.rho(step, steps)
        if rho is None:
            model.sharpen()
            return False
        for name, buffer in model.named_buffers():
            if name.split(".")[-1] == "raw_rho":
                buffer.fill_(raw_of_rho(rho))
        return True


RHO = Annealing()
"""Corners from wide to sharp; then `Flow.fit` removes them and trains the PLU network that is left."""


def annealing_of(bijection: nn.Module, asked: Annealing | None = None) -> Annealing | None:
    """Return how a bijection is annealed in training: as asked, else as it was built to be, else not at all.

    A bijection without rounded corners, such as one that was annealed before, has nothing left to anneal: None.
    """
    if asked is None:
        return next((found for part in bijection.modules() if (found := getattr(part, "annealing", None))), None)
    if any(name.split(".")[-1] == "raw_rho" for name, _ in bijection.named_parameters()):
        raise ValueError(
            "rho is learned in this bijection, so it cannot be annealed; leave anneal out, or build it with "
            'density(features, activation="annealed")'
        )
    return asked if any(name.split(".")[-1] == "raw_rho" for name, _ in bijection.named_buffers()) else None


@dataclass(frozen=True, repr=False)
class Fitted:
    """What `Flow.fit` did.

    Attributes:
        losses: the mean negative log-likelihood of each step's batch, in nats.
        validation: that of the validation points, by the number of steps done; empty without validation.
        step: the steps after which the flow had the parameters that it has now: the best ones by validation, else all.
    """

    losses: list[float]
    validation: dict[int, float]
    step: int

    def __repr__(self) -> str:
        return f"Fitted({len(self.losses)} steps, parameters of step {self.step}, loss {self.loss:.4g})"

    @property
    def loss(self) -> float:
        """The validation loss of the parameters that the flow has; without validation the loss of the last step."""
        return self.validation[self.step] if self.validation else self.losses[-1]


class Diverged(RuntimeError):
    """Training met a likelihood that is not finite; the flow has the parameters of the last step where it was.

    With validation the flow has the best parameters by validation, if there were any yet.
    """

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(
            f"training diverged at step {step}: the mean negative log-likelihood is {loss}. The flow keeps the last "
            f"good parameters; try a smaller lr, or data without outliers"
        )
        self.step = step


def check_options(anneal: Any, generator: Any, progress: Any, validation: Any, patience: Any) -> None:
    """Raise unless training can be run with these options, here and now."""
    if torch.is_inference_mode_enabled():
        raise RuntimeError("fit needs gradients, which torch.inference_mode() forbids; call fit outside of it")
    if patience is not None and validation is None:
        raise ValueError(f"patience needs validation, got patience={patience} without; give points or a fraction")
    if not (anneal is None or isinstance(anneal, Annealing)):
        raise TypeError(f"anneal takes an Annealing such as RHO, got {anneal!r}")
    if not (generator is None or isinstance(generator, Generator)):
        raise TypeError(f"generator takes a torch.Generator, or None, got {generator!r}")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress takes True, False or a function of (steps done, loss), got {progress!r}")


class FlowState:
    """A state of a flow to go back to: its bijection, and the values of its tensors."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        # one list for all steps: when the corners are removed, the sharp bijection shares the parameters, and the
        # buffers that only it has are constant
        self.tensors = [tensor.detach() for tensor in (*flow.parameters(), *flow.buffers())]
        self.state = (flow.bijection, [tensor.clone() for tensor in self.tensors])
        self._spare = [tensor.clone() for tensor in self.tensors]

    def renew(self) -> None:
        """Keep the flow as it is now. An interruption leaves the old state or the new one, never a mixture."""
        torch._foreach_copy_(self._spare, self.tensors)  # one call, because it is made at each step
        old, self.state = self.state, (self.flow.bijection, self._spare)
        self._spare = old[1]

    def restore(self) -> None:
        """Give the flow the kept state."""
        self.flow.bijection, values = self.state
        torch._foreach_copy_(self.tensors, values)


@torch.no_grad()
def mean_loss(flow: Flow, rows: Rows, weights: Tensor | None) -> float:
    """Return the mean negative log-likelihood of rows, in nats, each weighted by its share."""
    parts = zip(*(torch.split(part, _CHUNK) for part in rows), strict=True)
    values = torch.cat([-flow.log_prob(*part) for part in parts])
    return float(values.mean() if weights is None else values @ shares(weights).to(values))
