"""Densities from bijections: `Flow`, with exact likelihood, sampling and training by maximum likelihood."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution

from plunit.invertible.anneal import Annealing, annealing_of
from plunit.invertible.bijection import Bijection, expect
from plunit.invertible.boundary import training
from plunit.invertible.frozen import Frozen
from plunit.invertible.points import sampler
from plunit.invertible.progress import Report, bar
from plunit.invertible.training import minimise


class StandardNormal(nn.Module):
    """N(0, 1) on R^n: the base density of a flow."""

    origin: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("origin", torch.zeros(()), persistent=False)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log density, -|z|^2 / 2 - n/2 log(2 pi)."""
        return -0.5 * z.square().sum(-1) - 0.5 * self.features * math.log(2 * math.pi)

    def sample(self, n: int, generator: Generator | None = None) -> Tensor:
        """Draw n points in the dtype and on the device of the module."""
        like: dict[str, Any] = {"dtype": self.origin.dtype, "device": self.origin.device}
        return torch.randn(n, self.features, generator=generator, **like)


class Diverged(RuntimeError):
    """Training met a likelihood that is not finite; the flow has the parameters of the last step where it was."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(
            f"training diverged at step {step}: the mean negative log-likelihood is {loss}. The flow keeps the last "
            f"good parameters; try a smaller lr, or data without outliers"
        )
        self.step = step


class Flow(nn.Module):
    """The density p(x) = base(z) |det dz/dx| with z = bijection(x).

    The bijection's forward direction goes from data to base, so that the likelihood, and with it training, costs matrix
    products only; sampling goes through its inverse.

    Args:
        bijection: maps data to base.
        base: a `torch.distributions` Distribution over vectors; by default the standard normal.

    >>> from plunit.invertible import density
    >>> flow = Flow(density(2, blocks=2))
    >>> flow.sample(5).shape, flow.log_prob(torch.zeros(5, 2)).shape
    (torch.Size([5, 2]), torch.Size([5]))
    """

    def __init__(self, bijection: Bijection, base: Distribution | None = None) -> None:
        super().__init__()
        expect(bijection, "Flow")
        if base is not None and base.batch_shape:
            raise ValueError(f"the base must be one distribution, got a batch of shape {tuple(base.batch_shape)}")
        if base is not None and base.event_shape != (bijection.features,):
            raise ValueError(
                f"the base must be a distribution over vectors of {bijection.features} features, got event shape "
                f"{tuple(base.event_shape)}; wrap it in torch.distributions.Independent(base, 1)"
            )
        self.bijection = bijection
        self.base: StandardNormal | Distribution = StandardNormal(bijection.features) if base is None else base

    def forward(self, x: Tensor) -> Tensor:
        """Return log p(x); `log_prob` as a module's call, for torch.func.functional_call."""
        return self.log_prob(x)

    def log_prob(self, x: Tensor) -> Tensor:
        """Return log p(x), shape x.shape[:-1]."""
        z, log_det = self.bijection.of_data(x)
        return self.base.log_prob(z) + log_det

    @torch.no_grad()
    def sample(self, n: int, generator: Generator | None = None) -> Tensor:
        """Draw n points, shape (n, features)."""
        return self.bijection.inverse(self._draw(n, generator))[0].contiguous()

    def sample_and_log_prob(self, n: int, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Draw n points with their log densities, in one pass; both are differentiable in the parameters."""
        z = self._draw(n, generator)
        x, log_det = self.bijection.inverse(z)
        return x, self.base.log_prob(z) - log_det

    def frozen(self) -> Flow:
        """A flow of the same density without parameters: for many calls of `log_prob` and `sample` after training."""
        if isinstance(self.base, Distribution):
            return Flow(Frozen(self.bijection), self.base)
        return Flow(Frozen(self.bijection)).to(self.base.origin)

    def fit(
        self,
        data: Tensor | Callable[[int], Tensor],
        steps: int = 3000,
        *,
        batch: int = 512,
        lr: float = 1e-2,
        anneal: Annealing | None = None,
        generator: Generator | None = None,
        progress: bool | Report = False,
    ) -> list[float]:
        """Train by maximum likelihood: Adam, the learning rate falling to 0 along a half cosine. Return the losses.

        Args:
            data: points of shape (..., features), of which each step takes `batch` at random; or a function that draws
                that many.
            steps: how many steps.
            batch: points in a step.
            lr: the learning rate at the start.
            anneal: how rho is to shrink on the way; by default as the bijection was built to be annealed. When rho has
                reached its end the corners are removed, and what is left of the steps trains the sharp network.
            generator: where the random choice of points comes from.
            progress: True draws a bar (with rich, if installed); a function is called with (steps done, loss).
        """
        _check_options(steps, batch, lr, anneal)
        anneal = annealing_of(self.bijection, anneal)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise ValueError("this flow has nothing to learn; build it with learnable parts (a frozen one has none)")
        draw = sampler(data, self.bijection.features, generator)
        optimizer = torch.optim.Adam(self.parameters(), lr, fused=True)
        reporting = bar(steps) if progress is True else nullcontext(progress or (lambda done, loss: None))
        good = _LastGood(self)
        x: Tensor

        def loss() -> Tensor:
            nonlocal x
            x = draw(batch)
            return -self.log_prob(x).mean()

        with reporting as report, training(self):
            losses = minimise(
                self,
                loss,
                optimizer,
                steps,
                anneal=anneal,
                check=good.check,
                report=lambda done, loss: report(done, loss.item()),
            )
        with torch.no_grad():  # the last step has changed the parameters: on its batch they must be good
            good.check(steps, -self.log_prob(x).mean())
        return losses.tolist()

    def sharpen(self) -> None:
        """Remove all rounded corners: the bijection becomes the sharp one, which shares its parameters."""
        self.bijection = self.bijection.sharp()

    def _draw(self, n: int, generator: Generator | None) -> Tensor:
        if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
            raise ValueError(f"the number of samples must be an integer of at least 1, got {n!r}")
        n = operator.index(n)
        if isinstance(self.base, StandardNormal):
            return self.base.sample(n, generator)
        if generator is not None:
            raise ValueError("this base, a torch.distributions one, takes no generator; use torch.manual_seed")
        return self.base.rsample((n,)) if self.base.has_rsample else self.base.sample((n,))


class _LastGood:
    """A flow at the last step where its loss was finite: its bijection, and the values of its tensors."""

    def __init__(self, flow: Flow) -> None:
        self.flow, self.bijection = flow, flow.bijection
        # one list for all steps: when the corners are removed, the exact bijection shares the parameters, and what
        # buffers it has of its own are constant
        self.tensors = [tensor.detach() for tensor in (*flow.parameters(), *flow.buffers())]
        self.values = [tensor.clone() for tensor in self.tensors]

    def check(self, step: int, loss: Tensor) -> None:
        """Keep the flow as it is if its loss is finite; else give it back its last good state and raise Diverged."""
        if loss.isfinite():
            self.bijection = self.flow.bijection
            _copy(self.tensors, self.values)
        else:
            self.flow.bijection = self.bijection
            _copy(self.values, self.tensors)
            raise Diverged(step, loss.item())


def _copy(sources: list[Tensor], targets: list[Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def _check_options(steps: int, batch: int, lr: float, anneal: Annealing | None) -> None:
    """Raise unless training can be run with these options."""
    for name, count in (("steps", steps), ("batch", batch)):
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {count!r}")
    if not (anneal is None or isinstance(anneal, Annealing)):
        raise TypeError(f"anneal takes an Annealing such as RHO, got {anneal!r}")
    if not 0 < lr < math.inf:
        raise ValueError(f"lr must be positive and finite, got {lr}; the default is 0.01")
