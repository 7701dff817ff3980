"""Densities from bijections: `Flow`, with exact likelihood, sampling and training by maximum likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution

from plunit.invertible.anneal import Annealing
from plunit.invertible.bijection import Bijection
from plunit.invertible.progress import Report, bar


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
        z, log_det = self.bijection(x)
        return self.base.log_prob(z) + log_det  # type: ignore[no-any-return]

    @torch.no_grad()
    def sample(self, n: int, generator: Generator | None = None) -> Tensor:
        """Draw n points, shape (n, features)."""
        return self.bijection.inverse(self._draw(n, generator))[0]

    def sample_and_log_prob(self, n: int, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Draw n points with their log densities, in one pass; both are differentiable in the parameters."""
        z = self._draw(n, generator)
        x, log_det = self.bijection.inverse(z)
        return x, self.base.log_prob(z) - log_det

    def frozen(self) -> Flow:
        """A flow of the same density without parameters: for many calls of `log_prob` and `sample` after training."""
        if isinstance(self.base, Distribution):
            return Flow(self.bijection.frozen(), self.base)
        return Flow(self.bijection.frozen()).to(self.base.origin)

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
            anneal: a quantity to shrink on the way. After rho the corners are removed: the bijection is then the exact
                one, and its likelihood another than the last losses, which are those of the rounded one.
            generator: where the random choice of points comes from.
            progress: True draws a bar (with rich, if installed); a function is called with (steps done, loss).
        """
        if steps < 1 or batch < 1:
            raise ValueError(f"steps must be at least 1, got {steps}, and so must batch, got {batch}")
        draw = self._sampler(data, generator)
        optimizer = torch.optim.Adam(self.parameters(), lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        reporting = bar(steps) if progress is True else nullcontext(progress or (lambda done, loss: None))
        losses: list[float] = []
        good = _copy(self)
        with reporting as report:
            for step in range(steps):
                if anneal is not None:
                    anneal.apply(self.named_buffers(), step / max(steps - 1, 1))
                optimizer.zero_grad()
                loss = -self.log_prob(draw(batch)).mean()
                losses.append(loss.item())
                if not math.isfinite(losses[-1]):
                    _restore(self, good)
                    raise Diverged(step, losses[-1])
                good = _copy(self)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                report(step + 1, losses[-1])
        if anneal is not None and anneal.quantity == "rho":
            self.bijection = self.bijection.exact()
        return losses

    def _draw(self, n: int, generator: Generator | None) -> Tensor:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"the number of samples must be an integer of at least 1, got {n!r}")
        if isinstance(self.base, StandardNormal):
            return self.base.sample(n, generator)
        if generator is not None:
            raise ValueError("this base, a torch.distributions one, takes no generator; use torch.manual_seed")
        return self.base.rsample((n,)) if self.base.has_rsample else self.base.sample((n,))

    def _sampler(self, data: Tensor | Callable[[int], Tensor], generator: Generator | None) -> Callable[[int], Tensor]:
        """Return a function that draws a batch of checked points."""
        if not isinstance(data, Tensor):
            return lambda n: _finite(data(n))
        points = _finite(data).reshape(-1, data.shape[-1])
        if len(points) == 0:
            raise ValueError(f"fit needs at least one point, got data of shape {tuple(data.shape)}")
        return lambda n: points[torch.randint(len(points), (n,), generator=generator).to(points.device)]


def _finite(x: Tensor) -> Tensor:
    """Return x, or raise if a value is not finite."""
    bad = ~x.isfinite()
    if bad.any():
        raise ValueError(
            f"fit needs finite data, got {int(bad.sum())} values that are not, the first at index "
            f"{tuple(bad.nonzero()[0].tolist())}; drop or impute those rows"
        )
    return x


def _copy(module: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


@torch.no_grad()
def _restore(module: nn.Module, values: list[Tensor]) -> None:
    for parameter, value in zip(module.parameters(), values, strict=True):
        parameter.copy_(value)
