"""Densities from bijections: `Flow`, with exact likelihood, sampling and training by maximum likelihood.

Such densities are normalizing flows (Rezende and Mohamed, 2015; docs/glossary.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution

from plunit import learned
from plunit.base.progress import step_bar
from plunit.base.ranges import as_count
from plunit.densities import DensityNetwork
from plunit.invertible import saving
from plunit.invertible.bijections.anneal import Annealing, annealing_of
from plunit.invertible.bijections.bijection import Bijection, expect
from plunit.invertible.bijections.chain import Chain
from plunit.invertible.bijections.elementwise import PLU, LeakyReLU
from plunit.invertible.bijections.linear import LU
from plunit.invertible.bijections.smooth_plu import SmoothPLU
from plunit.invertible.contexts import Conditional
from plunit.invertible.distributions import Base, Given, base_for
from plunit.invertible.frozen import Frozen
from plunit.invertible.training.batches import PointShape, check_dense, check_finite, prepare
from plunit.invertible.training.likelihood import Fitted, HeldOut, as_positive, check_options, train

_LARGEST_BATCH = 10_000_000
_ACTIVATIONS: dict[str, Callable[..., Bijection]] = {
    "smooth": partial(SmoothPLU, learnable_rho=True),
    "plu": PLU,
    "leaky": LeakyReLU,
}


class Flow(nn.Module):
    """The density p(x) = base(z) |det dz/dx| with z = bijection(x), or p(x | context) with z = bijection(x, context).

    The bijection's forward direction goes from data to base, so that the likelihood, and with it training, costs matrix
    products only; sampling goes through its inverse.

    Args:
        bijection: maps data to base. A `Conditional` one makes a conditional density.
        base: a `torch.distributions` Distribution over vectors; by default the standard normal.

    >>> from plunit.invertible import density
    >>> flow = Flow(density(2, blocks=2))
    >>> flow.sample(5).shape, flow.log_prob(torch.zeros(5, 2)).shape
    (torch.Size([5, 2]), torch.Size([5]))
    """

    bijection: Bijection | Conditional

    def __init__(self, bijection: Bijection | Conditional, base: Distribution | None = None) -> None:
        super().__init__()
        if not isinstance(bijection, Conditional):
            expect(bijection, "Flow")
        self.bijection = bijection
        tensors = (*bijection.parameters(), *bijection.buffers())
        like = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.zeros(()))
        self.base: Base = base_for(bijection.features, base, like)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Return log p(x); `log_prob` as a module's call, for torch.func.functional_call."""
        return self.log_prob(x, context)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Return log p(x), shape x.shape[:-1]; of a conditional flow log p(x | context), the two broadcast.

        A point or a context with NaN has the density NaN, as in all of PyTorch, and the others have theirs.
        """
        if not isinstance(x, Tensor):
            raise TypeError(f"log_prob takes tensors, got {type(x).__name__}; torch.as_tensor makes one of it")
        check_dense(x, "log_prob")
        z, log_det = self.bijection.of_data(x, *self._given(context))
        return self.base.log_prob(z) + log_det

    @torch.no_grad()
    def sample(self, n: int, context: Tensor | None = None, *, generator: Generator | None = None) -> Tensor:
        """Draw n points, shape (n, features); for contexts (..., k) n of each, shape (n, ..., features).

        Contexts must be finite.
        """
        for given in self._given(context):
            check_finite(given)
        return self.rsample(n, context, generator=generator).contiguous()

    def rsample(self, n: int, context: Tensor | None = None, *, generator: Generator | None = None) -> Tensor:
        """Draw points as `sample` does, differentiable in the parameters and the context; NaN there goes through."""
        return self.sample_and_log_prob(n, context, generator=generator)[0]

    def sample_and_log_prob(
        self, n: int, context: Tensor | None = None, *, generator: Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw points with their log densities, in one pass; both are differentiable as those of `rsample`."""
        n = as_count("the number of samples", n, 1)
        given = self._given(context)
        batch = given[0].shape[:-1] if given else ()
        z = self.base.draw((n, *batch), generator)
        x, log_det = self.bijection.inverse(z, *given)
        return x, self.base.log_prob(z) - log_det

    def given(self, context: Tensor) -> Flow:
        """The density p(x | context) for one context of a conditional flow, as a flow of its own; it can be frozen.

        It is a copy: later training of this flow does not change it.
        """
        if not isinstance(self.bijection, Conditional):
            raise ValueError("this flow has no context; conditional(...) makes a bijection with one")
        return self._with(self.bijection.at(*self._given(context)))

    def frozen(self) -> Flow:
        """A flow of the same density without parameters: for many calls of `log_prob` and `sample` after training."""
        if isinstance(self.bijection, Conditional):
            raise ValueError("a conditional flow is frozen for one context at a time: flow.given(context).frozen()")
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
        """Train by maximum likelihood: Adam, the learning rate falling to 0 along a half cosine.

        However training ends, by an error or by Ctrl-C too, the flow keeps its best state by validation or, without
        validation, the last one whose loss was finite.

        Args:
            data: points of shape (..., features), a tensor, an array or lists, of which each step takes `batch` at
                random; a function that draws so many; or a loader, an iterable of batches, which is read again and
                again. Functions and loaders of a conditional flow give pairs (points, contexts). Numbers are converted
                to the dtype and device of the flow. What cannot be learned is named: see
                `plunit.invertible.training.screening`.
            steps: how many steps.
            context: the contexts of the points, shape (..., k), for a conditional flow.
            weights: a number >= 0 for each point: its part in the likelihood. A step takes points in proportion.
            validation: points that are not trained with, a pair (points, contexts) for a conditional flow; or the
                fraction of data to set aside. Their likelihood is measured at a hundred moments, and in the end the
                flow has the parameters that were best.
            patience: end training after so many steps without a better validation loss.
            batch: points in a step; a loader has its own.
            lr: the learning rate at the start.
            clip: the largest norm of the gradient: longer ones are shortened to it. 1 serves conditional flows of thin
                densities, where single batches have gradients that are far longer than others. None never shortens.
            anneal: how rounded corners shrink on the way; by default as the bijection was built to be. When rho has
                reached its end the corners are removed: the bijection is then the sharp one, and what is left of the
                steps trains that. A bijection without rounded corners has nothing left to anneal.
            generator: where the random choice of points comes from.
            progress: True draws a bar (with rich, if installed); a function is called with (steps done, loss).

        Returns:
            the losses, the validation losses and the step whose parameters the flow has.
        """
        steps, batch = as_count("steps", steps, 1), as_count("batch", batch, 1, _LARGEST_BATCH)
        patience = None if patience is None else as_count("patience", patience, 1)
        lr, clip = as_positive("lr", lr, sys.float_info.max), None if clip is None else as_positive("clip", clip)
        check_options(anneal, generator, progress, validation, patience)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise ValueError("this flow has nothing to learn; build it with learnable parts (a frozen one has none)")
        anneal = annealing_of(self.bijection, anneal)
        size = self.bijection.context if isinstance(self.bijection, Conditional) else None
        form = PointShape(self.bijection.features, size, self.base.origin)
        draw, aside, aside_weights = prepare(form, data, context, weights, validation, batch, generator)
        first = 0 if anneal is None else anneal.first_sharp(steps)
        held = None if aside is None else HeldOut(self, aside, aside_weights, steps, patience, first)
        optimizer = torch.optim.Adam(self.parameters(), lr, fused=True)
        if clip is not None:
            optimizer.register_step_pre_hook(lambda *_: _shorten(self, clip))
        with step_bar(steps) if progress is True else nullcontext(progress or (lambda done, loss: None)) as show:
            return train(self, lambda: draw(batch), optimizer, steps, anneal, held, show)

    def sharpen(self) -> None:
        """Remove all rounded corners: the bijection becomes the sharp one, which shares its parameters."""
        self.bijection = self.bijection.sharp()

    def save(self, path: str | Path) -> None:
        """Write the flow, its structure and its numbers, to one safetensors file; see `plunit.invertible.saving`."""
        saving.write(Path(path), self.bijection, self.base.origin.dtype, isinstance(self.base, Given))

    @classmethod
    def load(cls, path: str | Path, base: Distribution | None = None) -> Flow:
        """Return the flow that a file of `save` holds, on the CPU. A base of one's own is not in the file: give it."""
        bijection, dtype, own_base = saving.read(Path(path))
        if own_base and base is None:
            raise ValueError(f"{path} holds a flow over a base of its own: pass base=, as it was built")
        if base is not None and not own_base:
            raise ValueError(f"{path} holds a flow over the standard normal: leave base out")
        return cls(bijection, base).to(dtype)

    def _with(self, bijection: Bijection) -> Flow:
        """Return a flow of another bijection with the same base."""
        if isinstance(self.base, Given):
            return Flow(bijection, self.base.distribution)
        return Flow(bijection).to(self.base.origin)

    def _given(self, context: Tensor | None) -> tuple[Tensor, ...]:
        """Return the context as arguments for the bijection: none or one."""
        if isinstance(context, Generator):
            raise TypeError("the second argument is a context; pass a random generator as generator=")
        if not isinstance(self.bijection, Conditional):
            if context is None:
                return ()
            raise ValueError("this flow has no context; leave it out, or build the flow with conditional(...)")
        if context is None:
            raise ValueError(f"this flow is conditional: give a context of {self.bijection.context} numbers")
        if isinstance(context, Tensor):
            check_dense(context, "context")
        self.bijection.check(context)
        return (context,)


def _shorten(flow: Flow, clip: float) -> None:
    """Shorten the gradient to a norm of at most `clip`."""
    nn.utils.clip_grad_norm_(flow.parameters(), clip)


def to_flow(network: DensityNetwork) -> Flow:
    """Return the flow of the same density, in the dtype of the network's parameters.

    Its parameters can be trained on by `Flow.fit`, and its bijections be used wherever PyTorch's are.

    >>> import numpy as np
    >>> from plunit.densities import Architecture, start
    >>> form = Architecture(2, 3)
    >>> begun = start(form, np.random.default_rng(0))
    >>> to_flow(DensityNetwork(form, begun.theta, begun.order, begun.sign)).log_prob(torch.zeros(5, 2)).shape
    torch.Size([5])
    """
    return Flow(to_chain(network)).to(torch.from_numpy(network.theta).dtype)


def to_chain(network: DensityNetwork) -> Chain:
    """Return the map from data to base of a network, in float64."""
    if network.rho:
        raise ValueError(
            f"the network must have its final kinks, got one in training with corners of rho {network.rho}"
        )
    form, views = network.architecture, network.views
    parts: list[Bijection] = []
    for i in range(form.maps):
        linear = {"lower": views["lower"][i], "upper": views["upper"][i], "bias": views["bias"][i]}
        linear |= {"raw_diagonal": network.log_diagonal[i], "sign": network.sign[i], "permutation": network.order[i]}
        parts.append(_loaded(LU(form.features), linear))
        if i < form.blocks:
            # beyond their limit numbers have no effect
            names = [name for name in ("alpha", "c", "rho") if name in views]
            shapes = {f"raw_{name}": views[name][i].clip(-learned.LIMIT, learned.LIMIT) for name in names}
            parts.append(_loaded(_ACTIVATIONS[form.activation](form.features, learnable=True), shapes))
    return Chain(*parts)


def _loaded(part: Bijection, arrays: Mapping[str, Any]) -> Bijection:
    """Give a bijection its numbers, in float64."""
    part.to(torch.float64).load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
    return part
