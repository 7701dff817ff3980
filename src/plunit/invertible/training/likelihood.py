"""Maximum likelihood, behind `Flow.fit`: checked options, steps of Adam, validation, patience, the best parameters.

`train` trains one flow. `minimise` is the loop of steps itself, which also trains stacks of flows in the lab.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR

from plunit.invertible.bijections.anneal import Annealing
from plunit.invertible.training.batches import Rows, shares

if TYPE_CHECKING:
    from plunit.invertible.flow import Flow

_CHUNK = 4096  # points whose likelihood is computed at once when nothing is learned from them


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


def as_positive(name: str, value: Any, most: float = math.inf) -> float:
    """Return a number above 0 and at most `most`, of NumPy and PyTorch too, or raise ValueError."""
    try:
        found = float(value) if hasattr(value, "__float__") and not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, RuntimeError):
        found = math.nan
    if not 0 < found <= most:
        raise ValueError(f"{name} must be positive{' and finite' if most < math.inf else ''}, got {value!r}")
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


class Model(Protocol):
    """What annealing needs of the model that is trained."""

    def named_buffers(self) -> Iterable[tuple[str, Tensor]]:
        """All buffers, with their names."""

    def sharpen(self) -> None:
        """Remove all rounded corners. The parameters stay the same tensors."""


def minimise(
    model: Model,
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
        model: what is annealed.
        losses: returns the losses of a step: one number, or one for each member of a stack.
        optimizer: holds the parameters and the step size at the start.
        steps: how many steps.
        anneal: a quantity to shrink on the way. When rho has reached its end the corners are removed.
        check: called with (steps done, losses) before the parameters change; True ends training there.
        progress: called with (steps done, losses) after they have changed.
    """
    schedule = CosineAnnealingLR(optimizer, steps)
    history: list[Tensor] = []
    sharp = False
    for step in range(steps):
        if anneal is not None and not sharp:
            passed = anneal.progress(step, steps)
            sharp = anneal.is_over(passed)
            if sharp:
                model.sharpen()  # the optimiser goes on, because the sharp model has the same parameters
            else:
                anneal.apply(model.named_buffers(), passed)
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
        self, flow: Flow, rows: Rows, weights: Tensor | None, steps: int, patience: int | None, first: int
    ) -> None:
        self.flow, self.rows, self.patience, self.first = flow, rows, patience, first
        self.weights = None if weights is None else shares(weights).to(rows[0])
        self.every = max(1, steps // 100)
        self.losses: dict[int, float] = {}
        self.best = Kept(flow)
        self.step: int | None = None

    def is_due(self, step: int) -> bool:
        """Say whether the flow is to be measured after so many steps."""
        return step % self.every == 0 and step not in self.losses

    @torch.no_grad()
    def measure(self, step: int) -> bool:
        """Measure the flow after so many steps, and keep it if it is the best. Say whether patience is at its end."""
        loss = self._loss()
        self.losses[step] = loss
        if step < self.first or not loss < float("inf"):
            return False
        if self.step is None or loss < self.losses[self.step]:
            self.best.keep()
            self.step = step
        return self.patience is not None and step - self.step >= self.patience

    def _loss(self) -> float:
        parts = zip(*(torch.split(part, _CHUNK) for part in self.rows), strict=True)
        values = torch.cat([-self.flow.log_prob(*part) for part in parts])
        return float(values.mean() if self.weights is None else values @ self.weights)
