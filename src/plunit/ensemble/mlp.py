"""F(x) = W_d a(W_{d-1} ... a(W_1 x + b_1) ... ) + b_d for S members at once, the members on the last axis.

All parameters of an ensemble are one matrix theta [parameters, S]: layer by layer the weights [out, in] and the biases
[out], then, where alpha and c are learned, one raw alpha and one raw c for each of the d - 1 activations
(`plunit.learned`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit import learned
from plunit.ensemble.arrays import Array, Scale, as_array
from plunit.ensemble.nonlinearities import ACTIVATIONS, Nonlinearity
from plunit.numpy import NAMESPACE
from plunit.pieces import Ensemble as Exact
from plunit.pieces import ensemble


@dataclass(frozen=True)
class MLP:
    """The form of every member: `widths` from input to output, depth d = len(widths) - 1 weight layers.

    >>> MLP((1, 3, 3, 1), "plu").parameters
    22
    """

    widths: tuple[int, ...]
    activation: str = "plu"

    def __post_init__(self) -> None:
        whole = all(isinstance(width, (int, np.integer)) for width in self.widths)
        if not whole or len(self.widths) < 2 or min(self.widths) < 1:
            raise ValueError(f"widths must be two or more positive integers, input to output, got {self.widths}")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"unknown activation {self.activation!r}; choose one of {', '.join(ACTIVATIONS)}")

    @property
    def depth(self) -> int:
        """Number of weight layers."""
        return len(self.widths) - 1

    @property
    def function(self) -> Nonlinearity:
        """The activation."""
        return ACTIVATIONS[self.activation]

    @property
    def learned(self) -> bool:
        """Whether alpha and c are trained."""
        return self.function.learned

    @property
    def parameters(self) -> int:
        """Number of parameters of one member."""
        weights = sum(n * (m + 1) for m, n in zip(self.widths, self.widths[1:], strict=False))
        return weights + (2 * (self.depth - 1) if self.learned else 0)

    def layers(self, theta: Array) -> Iterator[tuple[Array, Array]]:
        """Yield each layer's weights [out, in, S] and biases [out, S], views of theta [parameters, S]."""
        start = 0
        for m, n in zip(self.widths, self.widths[1:], strict=False):
            middle, stop = start + m * n, start + m * n + n
            yield theta[start:middle].reshape(n, m, -1), theta[middle:stop]
            start = stop

    def raw(self, theta: Array) -> Array:
        """Return the raw alpha and raw c, [2, depth - 1, S], a view of theta; empty unless learned."""
        return theta[self.parameters - 2 * (self.depth - 1) * self.learned :].reshape(2, -1, theta.shape[1])

    def alphas_and_cs(self, theta: Array, alpha: Any, c: Any, dtype: Any = None) -> tuple[Array, Array]:
        """Return the alpha and c in force, each [depth - 1, S]: the given ones, or the learned ones of theta.

        Given ones are a number, [S] or [depth - 1, S]; the result has `dtype`, by default that of theta.
        """
        if not self.learned:
            return broadcast(self, theta, alpha, dtype), broadcast(self, theta, c, dtype)
        raw_alpha, raw_c = self.raw(theta)
        return learned.fraction(NAMESPACE, raw_alpha), learned.positive(NAMESPACE, raw_c)


def initial(
    network: MLP,
    generators: Sequence[np.random.Generator],
    *,
    scales: Sequence[float] | None = None,
    alpha: float = 0.1,
    c: float = 1.0,
) -> Array:
    """Draw theta: weights N(0, scale^2), biases 0; each member from its own generator.

    A member's weights depend only on its generator, and are the same for every activation. `scales` holds one standard
    deviation for each layer, 1 by default. Learned alpha and c start at the given values.
    """
    if not len(generators):
        raise ValueError("initial needs one generator for each member, got none; pass [np.random.default_rng(0)]")
    scales = [1.0] * network.depth if scales is None else scales
    theta = np.zeros((network.parameters, len(generators)), dtype=np.float32)
    fans = [m * n for m, n in zip(network.widths, network.widths[1:], strict=False)]
    draws = np.stack([g.standard_normal(sum(fans), dtype=np.float32) for g in generators], axis=-1)
    parts = np.split(draws, np.cumsum(fans)[:-1])
    for (weight, _), scale, draw in zip(network.layers(theta), scales, parts, strict=True):
        weight[...] = (draw * np.float32(scale)).reshape(weight.shape)
    if network.learned:
        raw_alpha, raw_c = network.raw(theta)
        raw_alpha[...] = learned.raw_fraction(alpha)
        raw_c[...] = learned.raw_positive(c)
    return theta


def preactivations(network: MLP, theta: Any, x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Iterator[Array]:
    """Yield z_l = W_l a(z_{l-1}) + b_l, [units, batch, S], for l = 1 to depth; the last one is F(x).

    Args:
        network: the form of the members.
        theta: the parameters [parameters, S].
        x: inputs [in, batch] shared by the members, or [in, batch, S].
        alpha: the outer slope of PLU; a number, [S] or [depth - 1, S].
        c: the half-width of its inner piece, in the same shapes.
    """
    theta = as_array(theta)
    x = as_array(x, theta.dtype)
    alphas, cs = network.alphas_and_cs(theta, alpha, c)
    h = np.moveaxis(x if x.ndim == 3 else x[..., None], -1, 0)
    for depth, (weight, bias) in enumerate(network.layers(theta)):
        # one matrix product for each member, so that the order of its sums does not depend on the number of members
        z = np.ascontiguousarray(np.moveaxis(weight, -1, 0)) @ h + bias.T[..., None]
        yield np.moveaxis(z, 0, -1)
        if depth < network.depth - 1:
            h = network.function.value(z, alphas[depth][:, None, None], cs[depth][:, None, None])


def forward(network: MLP, theta: Any, x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Array:
    """Return F(x), [out, batch, S]; see `preactivations` for the arguments."""
    *_, output = preactivations(network, theta, x, alpha, c)
    return output


def broadcast(network: MLP, theta: Array, value: Any, dtype: Any = None) -> Array:
    """Return alpha or c as one number for each activation and member, [depth - 1, S], by default in theta's dtype."""
    return np.broadcast_to(as_array(value, dtype or theta.dtype), (network.depth - 1, theta.shape[1]))


def dead_units(network: MLP, theta: Array, x: Array, alpha: Any = 0.1, c: Any = 1.0) -> Array:
    """Count the hidden units of each member with slope 0 at every point of x [in, points]: their gradient is 0."""
    *hidden, _ = preactivations(network, theta, x, alpha, c)
    shapes = network.alphas_and_cs(theta, alpha, c)
    slopes = (network.function.slope(z, *one) for z, *one in zip(hidden, *shapes, strict=True))
    return np.asarray(sum((slope == 0).all(1).sum(0) for slope in slopes))


PIECEWISE = tuple(name for name, function in ACTIVATIONS.items() if function.exact)
"""The activations that are piecewise linear."""


def exact(network: MLP, theta: Any, alpha: Any = 0.1, c: Any = 1.0) -> Exact:
    """Return the members theta [parameters, S] of a piecewise-linear network as an ensemble for `plunit.pieces`."""
    make = network.function.exact
    if make is None:
        raise ValueError(f"{network.activation} is not piecewise linear; choose one of {', '.join(PIECEWISE)}")
    theta = as_array(theta)
    # learned ones are computed in the dtype of training, then converted exactly to float64
    alphas, cs = network.alphas_and_cs(theta, alpha, c, np.float64)
    layers: list[Any] = []
    for depth, pair in enumerate(network.layers(theta.astype(np.float64))):
        # [1, S]: one for all units of a member
        between = [make(*(part[depth - 1][None].astype(np.float64) for part in (alphas, cs)))] if depth else []
        layers += [*between, pair]
    return ensemble(layers)


def in_units(network: MLP, theta: Array, x: Scale, y: Scale) -> Array:
    """Return the parameters [parameters, S] of x -> y.spread f((x - x.mean) / x.spread) + y.mean, in float64."""
    theta = theta.astype(np.float64)
    layers = list(network.layers(theta))
    weight, bias = layers[0]
    weight /= x.spread[:, None]
    bias -= (weight * x.mean[:, None]).sum(1)
    weight, bias = layers[-1]
    weight *= y.spread[:, None, None]
    bias *= y.spread[:, None]
    bias += y.mean[:, None]
    return theta
