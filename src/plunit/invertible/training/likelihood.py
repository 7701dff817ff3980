"""Maximum likelihood, behind `Flow.fit`: steps of Adam, annealing, validation, patience, the best parameters.

`train` trains one flow. `minimise` is the loop of steps itself, which also trains stacks of flows in the lab.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR

from plunit.invertible.bijections.elementwise import raw_of_rho
from plunit.invertible.training.batches import Rows, shares

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


def as_positive(name: str, value: Any) -> float:
    """Return a number above 0, of NumPy and PyTorch too, or raise ValueError."""
    try:
        found = float(value) if hasattr(value, "__float__") and not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, RuntimeError):
        found = math.nan
    if not 0 < found <= sys.float_info.max:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return found


def train(
    flow: Flow,
    draw: Callable[[], Rows],
    optimizer: Optimizer,
    steps: int,
    anneal: Annealing | None,
    held: HeldOut | None,
    show: Callable[[int, float], None],
) -> Fitted:
    """Take the steps in training mode. Whatever ends them, the flow has its best or last good state, and its mode."""
    good, mode = Kept(flow), flow.training
    rows: Rows

    def loss() -> Tensor:
        nonlocal rows
        rows = draw()
        return -flow.log_prob(*rows).mean()

    def check(step: int, loss: Tensor) -> bool:
        if not loss.isfinite():
            raise Diverged(step, loss.item())
        good.keep()
        return held is not None and held.is_due(step) and held.measure(step)

    def report(done: int, loss: Tensor) -> None:
        show(done, loss.item())

    try:
        with torch.enable_grad():
            flow.train()
            losses = minimise(flow, loss, optimizer, steps, anneal=anneal, check=check, progress=report).tolist()
        with torch.no_grad():  # the last step has changed the parameters: on its batch they must be good
            check(len(losses), -flow.log_prob(*rows).mean())
        if held is not None and len(losses) not in held.losses:
            held.measure(len(losses))
    finally:
        best = None if held is None else held.step
        (good if held is None or best is None else held.best).restore()
        flow.train(mode)
    return Fitted(losses, {} if held is None else held.losses, len(losses) if best is None else best)


def minimise(
    model: Any,
    losses: Callable[[], Tensor],
    optimizer: Optimizer,
    steps: int,
    *,
    anneal: Annealing | None = None,
    check: Callable[[int, Tensor], bool] = lambda step, losses: False,
    progress: Callable[[int, Tensor], object] = lambda done, losses: None,
) -> Tensor:
    """Lower the sum of the losses, the step size falling to 0 along a half cosine. Return the losses of the steps.

    Args:
        model: what is annealed. `named_buffers()` has its roundings, which may be stacked as for torch.func.vmap;
            `sharpen()` removes all rounded corners and leaves the parameters the same tensors.
        losses: returns the losses of a step: one number, or one for each member of a stack.
        optimizer: holds the parameters and the step size at the start.
        steps: how many steps.
        anneal: how rho shrinks on the way. When it has reached its end the corners are removed.
        check: called with (steps done, losses) before the parameters change; True ends training there.
        progress: called with (steps done, losses) after they have changed.
    """
    schedule = CosineAnnealingLR(optimizer, steps)
    history: list[Tensor] = []
    for step in range(steps):
        rho = None if anneal is None else anneal.rho(step, steps)
        if rho is not None:
            for name, buffer in model.named_buffers():
                if name.split(".")[-1] == "raw_rho":
                    buffer.fill_(raw_of_rho(rho))
        elif anneal is not None:
            model.sharpen()  # the optimiser goes on, because the sharp model has the same parameters
            anneal = None
        values = losses()
        if check(step, values.detach()):
            break
        history.append(values.detach())
        optimizer.zero_grad()
        values.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        progress(step + 1, history[-1])
    return torch.stack(history)


class Kept:
    """A state of a flow to go back to: its bijection, and the values of its tensors."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        # one list for all steps: when the corners are removed, the sharp bijection shares the parameters, and what
        # buffers it has of its own are constant
        self.tensors = [tensor.detach() for tensor in (*flow.parameters(), *flow.buffers())]
        self.state = (flow.bijection, [tensor.clone() for tensor in self.tensors])
        self._spare = [tensor.clone() for tensor in self.tensors]

    def keep(self) -> None:
        """Keep the flow as it is now. An interruption leaves the old state or the new one, never a mixture."""
        torch._foreach_copy_(self._spare, self.tensors)  # one call, because it is made at each step
        old, self.state = self.state, (self.flow.bijection, self._spare)
        self._spare = old[1]

    def restore(self) -> None:
        """Give the flow the kept state."""
        self.flow.bijection, values = self.state
        torch._foreach_copy_(self.tensors, values)


class HeldOut:
    """The likelihood of points that are not trained with, at a hundred moments of training; the best state is kept.

    States before step `first` are not: while corners are still rounded it is another function. `patience` steps without
    a better likelihood end training; None never does.
    """

    def __init__(
        self, flow: Flow, rows: Rows, weights: Tensor | None, steps: int, patience: int | None, anneal: Annealing | None
    ) -> None:
        self.flow, self.rows, self.patience = flow, rows, patience
        self.first = 0 if anneal is None else next(s for s in range(steps) if anneal.rho(s, steps) is None)
        self.weights = None if weights is None else shares(weights).to(rows[0])
        self.every = max(1, steps // 100)
        self.losses: dict[int, float] = {}
        self.best = Kept(flow)
        self.step: int | None = None

    def is_due(self, step: int) -> bool:
        """Return whether the flow is due to be measured after this number of steps."""
        return step % self.every == 0 and step not in self.losses

    @torch.no_grad()
    def measure(self, step: int) -> bool:
        """Measure the flow, keep it if it is the best, and return whether patience has ended."""
        parts = zip(*(torch.split(part, _CHUNK) for part in self.rows), strict=True)
        values = torch.cat([-self.flow.log_prob(*part) for part in parts])
        self.losses[step] = loss = float(values.mean() if self.weights is None else values @ self.weights)
        if step < self.first or not loss < float("inf"):
            return False
        if self.step is None or loss < self.losses[self.step]:
            self.best.keep()
            self.step = step
        return self.patience is not None and step - self.step >= self.patience
