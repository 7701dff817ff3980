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

from plunit.invertible.anneal import Annealing
from plunit.invertible.bijection import Bijection, expect
from plunit.invertible.frozen import Frozen
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
        z, log_det = self.bijection(x)
        return self.base.log_prob(z) + log_det  # type: ignore[no-any-return]

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
            anneal: a quantity to shrink on the way. When rho has reached its end the corners are removed: the bijection
                is then the exact one, and what is left of the steps trains that.
            generator: where the random choice of points comes from.
            progress: True draws a bar (with rich, if installed); a function is called with (steps done, loss).
        """
        for name, count in (("steps", steps), ("batch", batch)):
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {count!r}")
        if not (anneal is None or isinstance(anneal, Annealing)):
            raise TypeError(f"anneal takes an Annealing such as RHO or BANDWIDTH, got {anneal!r}")
        if not 0 < lr < math.inf:
            raise ValueError(f"lr must be positive and finite, got {lr}; the default is 0.01")
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise ValueError("this flow has nothing to learn; build it with learnable parts (a frozen one has none)")
        draw = self._sampler(data, generator)
        optimizer = torch.optim.Adam(self.parameters(), lr, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        reporting = bar(steps) if progress is True else nullcontext(progress or (lambda done, loss: None))
        losses: list[float] = []
        good, sharp = self._keep(), False
        with reporting as report:
            for step in range(steps):
                if anneal is not None and not sharp:
                    done = anneal.progress(step, steps)
                    sharp = anneal.is_over(done)
                    self.sharpen() if sharp else anneal.apply(self.named_buffers(), done)
                x = draw(batch)
                loss = -self.log_prob(x).mean()
                losses.append(loss.item())
                self._stop_unless_finite(step, losses[-1], good)
                good = self._keep()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
                report(step + 1, losses[-1])
        with torch.no_grad():
            self._stop_unless_finite(steps, -self.log_prob(x).mean().item(), good)
        return losses

    def sharpen(self) -> None:
        """Remove all rounded corners: the bijection becomes the exact one, which shares its parameters."""
        self.bijection = self.bijection.exact()

    def _keep(self) -> tuple[Bijection, list[Tensor]]:
        """Return all that training changes."""
        return self.bijection, [tensor.detach().clone() for tensor in (*self.parameters(), *self.buffers())]

    @torch.no_grad()
    def _stop_unless_finite(self, step: int, loss: float, good: tuple[Bijection, list[Tensor]]) -> None:
        """Go back to a good state and raise Diverged if the loss is not finite."""
        if math.isfinite(loss):
            return
        self.bijection, values = good
        for tensor, value in zip((*self.parameters(), *self.buffers()), values, strict=True):
            tensor.copy_(value)
        raise Diverged(step, loss)

    def _draw(self, n: int, generator: Generator | None) -> Tensor:
        if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
            raise ValueError(f"the number of samples must be an integer of at least 1, got {n!r}")
        n = operator.index(n)
        if isinstance(self.base, StandardNormal):
            return self.base.sample(n, generator)
        if generator is not None:
            raise ValueError("this base, a torch.distributions one, takes no generator; use torch.manual_seed")
        return self.base.rsample((n,)) if self.base.has_rsample else self.base.sample((n,))

    def _sampler(self, data: Tensor | Callable[[int], Tensor], generator: Generator | None) -> Callable[[int], Tensor]:
        """Return a function that draws a batch of checked points."""
        if not isinstance(data, Tensor):
            if not callable(data):
                raise TypeError(
                    f"fit takes a tensor of points or a function that draws n of them, got {type(data).__name__}; "
                    f"torch.as_tensor makes one of an array"
                )
            return lambda n: self._points(data(n))
        points = self._points(data.detach()).reshape(-1, self.bijection.features)
        return lambda n: points[torch.randint(len(points), (n,), generator=generator).to(points.device)]

    def _points(self, x: Tensor) -> Tensor:
        """Return x, or raise unless it is a tensor of at least one point of finite values."""
        features = self.bijection.features
        if not isinstance(x, Tensor) or x.shape[-1:] != (features,) or x.numel() == 0:
            got = f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(
                f"fit needs points of {features} features, a tensor of shape (n, {features}), n > 0, got {got}"
            )
        return _finite(x)


def _finite(x: Tensor) -> Tensor:
    """Return x, or raise if a value is not finite."""
    bad = ~x.isfinite()
    if bad.any():
        raise ValueError(
            f"fit needs finite data, got {int(bad.sum())} values that are not, the first at index "
            f"{tuple(bad.nonzero()[0].tolist())}; drop or impute those rows"
        )
    return x
