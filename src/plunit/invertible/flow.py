"""Densities from bijections: `Flow`, with exact likelihood, sampling and training by maximum likelihood.

Such densities are normalizing flows (Rezende and Mohamed, 2015; docs/glossary.md).
"""

from __future__ import annotations

import copy
import importlib
import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution, Transform
from torch.optim.lr_scheduler import CosineAnnealingLR

from plunit.base.progress import bars
from plunit.base.ranges import as_count, as_positive
from plunit.invertible import saving
from plunit.invertible.batches import BatchRows, check_dense, context_size, prepare_batches, proportions
from plunit.invertible.bijections import boundary
from plunit.invertible.bijections.bijection import Bijection, expect
from plunit.invertible.bijections.chain import Frozen
from plunit.invertible.bijections.smooth_plu import Annealing, annealing_of
from plunit.invertible.contexts import Conditional, check_finite

_LARGEST_BATCH = 10_000_000
_CHUNK = 4096  # validation points whose likelihood is computed at once


class Flow(nn.Module):
    """The density p(x) = base(z) |det dz/dx| with z = bijection(x), or p(x | context) with z = bijection(x, context).

    The bijection maps data to base, so that likelihood and training need only matrix products; sampling uses its
    inverse.

    Args:
        bijection: maps data to base. A `Conditional` one makes a conditional density.
        base: a `torch.distributions` Distribution over vectors; by default the standard normal. `.to()` and `.double()`
            of the flow convert a copy of it.

    >>> from plunit.invertible import density
    >>> flow = Flow(density(2, blocks=2))
    >>> flow.sample(5).shape, flow.log_prob(torch.zeros(5, 2)).shape
    (torch.Size([5, 2]), torch.Size([5]))
    """

    bijection: Bijection | Conditional
    origin: Tensor
    """A zero with the dtype and device of the flow."""

    def __init__(self, bijection: Bijection | Conditional, base: Distribution | None = None) -> None:
        super().__init__()
        if not isinstance(bijection, Conditional):
            expect(bijection, "Flow")
        if base is not None:
            _check_base(base, bijection.features)
        self.bijection, self.base = bijection, base
        tensors = (*bijection.parameters(), *bijection.buffers())
        like = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.zeros(()))
        self.register_buffer("origin", torch.zeros((), dtype=like.dtype, device=like.device), persistent=False)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Return log p(x), as `log_prob` does; torch.func.functional_call needs this method."""
        return self.log_prob(x, context)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Return log p(x), shape x.shape[:-1]; for a conditional flow log p(x | context), with x and context broadcast.

        Points and contexts with NaN give NaN; others are not affected.
        """
        if not isinstance(x, Tensor):
            raise TypeError(f"log_prob expects a tensor, got {type(x).__name__}; convert it with torch.as_tensor")
        check_dense(x, "log_prob")
        z, log_det = boundary.of_data(self.bijection, x, *self._as_arguments(context))
        return self._base_log_prob(z) + log_det

    @torch.no_grad()
    def sample(self, n: int, context: Tensor | None = None, *, generator: Generator | None = None) -> Tensor:
        """Draw n points, shape (n, features); for contexts (..., k) n points each, shape (n, ..., features).

        Contexts must be finite.
        """
        for given in self._as_arguments(context):
            check_finite(given)
        return self.rsample(n, context, generator=generator).contiguous()

    def rsample(self, n: int, context: Tensor | None = None, *, generator: Generator | None = None) -> Tensor:
        """Draw points as `sample` does, differentiable in the parameters and the context, which may hold NaN."""
        return self.sample_and_log_prob(n, context, generator=generator)[0]

    def sample_and_log_prob(
        self, n: int, context: Tensor | None = None, *, generator: Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw points with their log densities, in one pass; both are differentiable, as in `rsample`."""
        n = as_count("the number of samples", n, 1)
        given = self._as_arguments(context)
        batch = given[0].shape[:-1] if given else ()
        z = self._draw((n, *batch), generator)
        x, log_det = self.bijection.inverse(z, *given)
        return x, self._base_log_prob(z) - log_det

    def at(self, context: Tensor) -> Flow:
        """Return a conditional flow's density p(x | context) for one context, as a flow that can be frozen.

        The result is a copy: later training of this flow does not change it.
        """
        if not isinstance(self.bijection, Conditional):
            raise ValueError("this flow has no context; build its bijection with conditional(...)")
        return self._with(self.bijection.at(*self._as_arguments(context)))

    def frozen(self) -> Flow:
        """Return a flow of the same density without parameters, for fast `log_prob` and `sample` after training."""
        if isinstance(self.bijection, Conditional):
            raise ValueError("a conditional flow can be frozen only for one context: flow.at(context).frozen()")
        return self._with(Frozen(self.bijection))

    def fit(
        self,
        data: Any,
        steps: int = 3000,
        *,
        context: Any = None,
        weights: Any = None,
        validation: Any = None,
        patience: int | None = None,
        batch: int = 512,
        lr: float = 1e-2,
        clip: float | None = None,
        anneal: Annealing | None = None,
        generator: Generator | None = None,
        progress: bool | Callable[[int, float], None] = False,
    ) -> Fitted:
        """Train by maximum likelihood with Adam; the learning rate falls to 0 along a half cosine.

        However training ends, even by an error or Ctrl-C, the flow has the state with the best validation loss or,
        without validation, the last state with a finite loss.

        Args:
            data: points of shape (..., features), as a tensor, an array or lists, from which each step draws `batch`
                at random; a function that draws n points; or a loader, an iterable of batches, which is repeated. For
                a conditional flow, functions and loaders provide pairs (points, contexts). Numbers are converted to
                the dtype and device of the flow. Columns without a density raise an error, and columns that are hard
                to learn a warning: see `plunit.invertible.batches`.
            steps: the number of steps.
            context: the contexts of the points, shape (..., k), for a conditional flow.
            weights: the weight of each point in the likelihood, a number >= 0. Steps draw points in proportion.
            validation: separate points, for a conditional flow a pair (points, contexts); or the fraction of data to
                hold out. Their likelihood is measured a hundred times, and the flow gets the best parameters.
            patience: stop after this number of steps without a better validation loss.
            batch: points per step; a loader has its own.
            lr: the initial learning rate.
            clip: the maximum norm of the gradient; None for no limit. 1 suits conditional flows of thin densities,
                where some batches have gradients far larger than others.
            anneal: how rounded corners shrink; the default is the bijection's own schedule. Then they are removed, and
                the remaining steps train the sharp bijection. Ignored if there are no rounded corners.
            generator: the source of random numbers for drawing points.
            progress: True shows a bar (if rich is installed); a function is called with (steps done, loss).

        Returns:
            the losses, the validation losses, and the step whose parameters the flow has.
        """
        steps, batch = as_count("steps", steps, 1), as_count("batch", batch, 1, _LARGEST_BATCH)
        patience = None if patience is None else as_count("patience", patience, 1)
        lr, clip = as_positive("lr", lr, 0.01), None if clip is None else as_positive("clip", clip, 1)
        _check_options(anneal, generator, progress, validation, patience)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise ValueError(
                "this flow has no trainable parameters; build it with learnable parts (a frozen flow has none)"
            )
        annealing = annealing_of(self.bijection, anneal)
        # with rounded corners the function is another one, so these states cannot be the best
        first = 0 if annealing is None else annealing.first_sharp_step(steps)
        draw, held, held_weights = prepare_batches(self, data, context, weights, validation, batch, generator)
        optimizer = torch.optim.Adam(self.parameters(), lr, fused=True)
        schedule = CosineAnnealingLR(optimizer, steps)
        losses: list[float] = []
        validation_losses: dict[int, float] = {}
        good, best, was_training = _FlowState(self), _FlowState(self), self.training
        best_step: int | None = None  # by validation
        bar = _step_bar(steps) if progress is True else nullcontext(progress or (lambda done, loss: None))
        try:
            with torch.enable_grad(), bar as show:
                self.train()
                for step in range(steps + 1):
                    if step < steps:  # the last round only checks that the likelihood is still finite
                        if annealing is not None and not annealing.shrink_corners(self, step, steps):
                            annealing = None
                        rows = draw(batch)
                    loss = -self.log_prob(*rows).mean()
                    if not loss.isfinite():
                        raise Diverged(step, loss.item())
                    good.renew()
                    if held is not None and (step % max(1, steps // 100) == 0 or step == steps):
                        validation_losses[step] = loss_now = _mean_nll(self, held, held_weights)
                        if step >= first and loss_now < math.inf:
                            if best_step is None or loss_now < validation_losses[best_step]:
                                best.renew()
                                best_step = step
                            elif patience is not None and step - best_step >= patience:
                                break
                    if step == steps:
                        break
                    optimizer.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    if clip is not None:
                        nn.utils.clip_grad_norm_(self.parameters(), clip)
                    optimizer.step()
                    schedule.step()
                    losses.append(loss.item())
                    show(step + 1, losses[-1])
        finally:
            (good if best_step is None else best).restore()
            self.train(was_training)
        return Fitted(losses, validation_losses, len(losses) if best_step is None else best_step)

    def sharpen(self) -> None:
        """Remove all rounded corners: the bijection becomes the sharp one with the same parameters."""
        self.bijection = self.bijection.sharp()

    def save(self, path: str | Path) -> None:
        """Write the structure and the numbers of the flow to a safetensors file; see `plunit.invertible.saving`."""
        saving.save_bijection(Path(path), self.bijection, self.origin.dtype, self.base is not None)

    @classmethod
    def load(cls, path: str | Path, base: Distribution | None = None) -> Flow:
        """Return the flow in a file of `save`, on the CPU. Files do not contain a base: pass the flow's own."""
        bijection, dtype, own_base = saving.load_bijection(Path(path))
        if own_base and base is None:
            raise ValueError(f"{path} holds a flow whose base is not the standard normal; pass base=")
        if base is not None and not own_base:
            raise ValueError(f"{path} holds a flow whose base is the standard normal; omit base")
        return cls(bijection, base).to(dtype)

    def _with(self, bijection: Bijection) -> Flow:
        """Return a flow with another bijection and the same base."""
        return Flow(bijection, self.base) if self.base is not None else Flow(bijection).to(self.origin)

    def _base_log_prob(self, z: Tensor) -> Tensor:
        if self.base is None:
            return -0.5 * z.square().sum(-1) - 0.5 * self.bijection.features * math.log(2 * math.pi)
        log_density: Tensor = self.base.log_prob(z)
        return log_density

    def _draw(self, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
        """Draw points from the base, differentiable in its tensors if the distribution has `rsample`."""
        if self.base is None:
            like: dict[str, Any] = {"dtype": self.origin.dtype, "device": self.origin.device}
            return torch.randn(*shape, self.bijection.features, generator=generator, **like)
        if generator is not None:
            raise ValueError("a base of torch.distributions does not accept a generator; use torch.manual_seed")
        return self.base.rsample(shape) if self.base.has_rsample else self.base.sample(shape)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Flow:
        self.base = None if self.base is None else _map_tensors(self.base, fn, {})
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    def _as_arguments(self, context: Tensor | None) -> tuple[Tensor, ...]:
        """Return the checked context as a tuple of arguments for the bijection: none or one."""
        if isinstance(context, Generator):
            raise TypeError("the second argument is a context; pass a random generator as generator=")
        context_size(self, context)
        if context is None or not isinstance(self.bijection, Conditional):
            return ()
        if isinstance(context, Tensor):
            check_dense(context, "context")
        self.bijection.check(context)
        return (context,)


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
            f"training diverged at step {step}: the mean negative log-likelihood is {loss}. The flow has its "
            f"best or last good parameters; try a smaller lr, or remove outliers"
        )
        self.step = step


def _check_options(anneal: Any, generator: Any, progress: Any, validation: Any, patience: Any) -> None:
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
def _step_bar(steps: int) -> Iterator[Callable[[int, float], None]]:
    """Yield a function of (steps done, loss) that advances a progress bar; without rich it does nothing."""
    try:
        shown = bars(importlib.import_module("rich.console").Console())
    except ImportError:
        yield lambda done, loss: None
        return
    with shown as bar:
        task = bar.add_task("", total=steps)
        yield lambda done, loss: bar.update(task, completed=done, description=f"{done}/{steps} NLL {loss:.3f}")


class _FlowState:
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
def _mean_nll(flow: Flow, rows: BatchRows, weights: Tensor | None) -> float:
    """Return the weighted mean negative log-likelihood of rows, in nats."""
    parts = zip(*(torch.split(part, _CHUNK) for part in rows), strict=True)
    values = torch.cat([-flow.log_prob(*part) for part in parts])
    return float(values.mean() if weights is None else values @ proportions(weights).to(values))


def _check_base(distribution: Distribution, features: int) -> None:
    """Raise unless the base is a single distribution over vectors of this number of features."""
    if not isinstance(distribution, Distribution):
        raise TypeError(
            f"the base must be a Distribution of torch.distributions, got {distribution!r:.60}; omit it for the "
            f"standard normal"
        )
    if distribution.batch_shape:
        raise ValueError(f"the base must be one distribution, got a batch of shape {tuple(distribution.batch_shape)}")
    if distribution.event_shape != (features,):
        raise ValueError(
            f"the base must be a distribution over vectors of {features} features, got event shape "
            f"{tuple(distribution.event_shape)}; wrap it in torch.distributions.Independent(base, 1)"
        )


def _map_tensors(part: Any, fn: Callable[[Tensor], Tensor], seen: dict[int, Any]) -> Any:
    """Return a distribution, or a part of one, with fn applied to all tensors; `seen` has the finished parts."""
    if isinstance(part, Tensor):
        return fn(part)
    if isinstance(part, nn.Module):
        return part._apply(fn)  # type: ignore[no-untyped-call]
    if type(part) in (list, tuple):
        return type(part)(_map_tensors(each, fn, seen) for each in part)
    if not isinstance(part, (Distribution, Transform)):
        return part
    if id(part) not in seen:  # a transform and its inverse refer to each other
        seen[id(part)] = twin = copy.copy(part)
        for name, value in vars(part).items():
            # PyTorch recreates missing weak references to inverses
            vars(twin)[name] = None if isinstance(value, weakref.ref) else _map_tensors(value, fn, seen)
    return seen[id(part)]
