"""Training steps in NumPy: a readable statement of the algorithm of `native_steps`.

The steps are Adam's (`plunit.ensemble.adam`), with decoupled weight decay (Loshchilov and Hutter, 2019;
docs/glossary.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plunit import learned
from plunit.ensemble.adam import adam_step, corrections, judge_losses
from plunit.ensemble.arrays import Array
from plunit.ensemble.nonlinearities import LOSSES
from plunit.ensemble.training_data import StepData, Validation
from plunit.ensemble.training_state import Part, State, Steps, check_capacity


def advance(parts: Sequence[Part]) -> None:
    """Take Adam's steps of all ensembles in place.

    Internally, members come first: theta is [S, rows], values are [S, units, points], and a layer is one stacked
    product.
    """
    for state, steps in parts:
        check_capacity(state, steps)
        with np.errstate(all="ignore"):  # members that diverge
            _Run(state, steps).train()


def gradient(state: State, given: StepData) -> tuple[Array, Array]:
    """Return each member's loss [S] and its gradient [parameters, S]."""
    with np.errstate(all="ignore"):
        loss, found = _Run(state, Steps(0, np.ones(1), given))._gradient(*_batch(given, 0, 0))
    return loss, found.T


def outputs(state: State, x: Array) -> Array:
    """Return the outputs [S, out, n] at x [S or 1, in, n]."""
    return _Run(state, Steps(0, np.ones(1), StepData(x, x)))._forward(x)[1][-1]


def jacobian(state: State, x: Array) -> tuple[Array, Array]:
    """Return the outputs [S, out, n] at x [S or 1, in, n], and their slopes in theta, [out, parameters, S, n]."""
    return _Run(state, Steps(0, np.ones(1), StepData(x, x)))._jacobian(x)


class _Run:
    def __init__(self, state: State, steps: Steps) -> None:
        self.state, self.steps, self.network = state, steps, state.network
        parts = (state.theta, state.mean, state.square, state.running)
        self.theta, self.mean, self.square, self.running = (part.T.copy() for part in parts)
        shares = steps.shares()
        self.shares = None if shares is None else shares.astype(state.theta.dtype)
        self.tests = None if steps.tests is None else _batch(steps.tests, 0, 0)

    def train(self) -> None:
        state, steps = self.state, self.steps
        for step in range(steps.first, steps.last):
            if self._ended().all():
                break
            loss, gradient = self._gradient(*_batch(steps.training, step - steps.first, step))
            if step % state.stride == 0:
                state.history[step // state.stride] = np.where(self._ended(), np.nan, loss)
            self._adam(step, gradient)
            if self.shares is not None:
                self.running += (self.theta - self.running) * self.shares[step - steps.first]
            if steps.validation and self.tests and (step + 1) % steps.validation.every == 0:
                self._validate(step + 1, steps.validation, *self.tests)
        ours = (self.theta, self.mean, self.square, self.running)
        for part, value in zip((state.theta, state.mean, state.square, state.running), ours, strict=True):
            part[...] = value.T

    def _ended(self) -> Array:
        patience = self.steps.validation.patience if self.steps.validation else np.inf
        return np.asarray(self.state.waited >= patience)

    def _layers(self) -> list[tuple[Array, Array]]:
        pairs = self.network.layers(self.theta.T)
        return [(np.moveaxis(weight, -1, 0), bias.T[..., None]) for weight, bias in pairs]

    def _shapes(self) -> list[tuple[Array, Array]]:
        alphas, cs = self.network.alphas_and_cs(self.theta.T, self.state.alpha, self.state.c)
        return [(a[:, None, None], c[:, None, None]) for a, c in zip(alphas, cs, strict=True)]

    def _forward(self, x: Array) -> tuple[list[Array], list[Array]]:
        """Return the inputs h and the preactivations z of all layers."""
        h, inputs, outputs = x, [], []
        shapes = self._shapes()
        for depth, (weight, bias) in enumerate(self._layers()):
            z = weight @ h + bias
            inputs.append(h)
            outputs.append(z)
            if depth < len(shapes):
                h = self.network.function.value(z, *shapes[depth])
        return inputs, outputs

    def _gradient(self, x: Array, y: Array, weight: Array) -> tuple[Array, Array]:
        """Return each member's loss [S] and its gradient [S, rows]."""
        inputs, outputs = self._forward(x)
        losses, delta = LOSSES[self.state.loss](outputs[-1], y)
        points = outputs[-1].shape[2]
        gradient = np.zeros_like(self.theta)
        views, raw = list(self.network.layers(gradient.T)), self.network.raw(gradient.T)
        for depth, part, shapes in self._backward(delta * (weight[:, None] / points), outputs):
            views[depth][0][...] = np.moveaxis(part @ inputs[depth].swapaxes(1, 2), 0, -1)
            views[depth][1][...] = part.sum(2).T
            if shapes:
                raw[:, depth - 1] = self._raw_slopes(depth - 1, *(one.sum((1, 2)) for one in shapes))
        return (losses * weight).mean(1), gradient

    def _jacobian(self, x: Array) -> tuple[Array, Array]:
        """Return the outputs [S, out, n], and their slopes in all parameters, [out, rows, S, n]."""
        inputs, outputs = self._forward(x)
        members, units, points = outputs[-1].shape
        found = np.zeros((units, self.theta.shape[1], members * points), self.theta.dtype)
        for unit, slopes in enumerate(found):
            delta = np.zeros_like(outputs[-1])
            delta[:, unit] = 1
            views, raw = list(self.network.layers(slopes)), self.network.raw(slopes)
            for depth, part, shapes in self._backward(delta, outputs):
                products = np.moveaxis(part[:, :, None] * inputs[depth][:, None], 0, 2)  # [units, inputs, S, n]
                views[depth][0][...] = products.reshape(views[depth][0].shape)
                views[depth][1][...] = part.swapaxes(0, 1).reshape(views[depth][1].shape)
                if shapes:
                    own = self._raw_slopes(depth - 1, *(one.sum(1).T for one in shapes))
                    raw[:, depth - 1] = own.swapaxes(1, 2).reshape(2, -1)
        return outputs[-1], found.reshape(units, -1, members, points)

    def _backward(self, delta: Array, outputs: list[Array]) -> Iterator[tuple[int, Array, tuple[Array, ...]]]:
        """Yield each layer's number, the last first, its delta, and `_shape_slopes` of the activation before it."""
        shapes, layers = self._shapes(), self._layers()
        for depth in range(self.network.depth - 1, 0, -1):
            pulled, z = layers[depth][0].swapaxes(1, 2) @ delta, outputs[depth - 1]
            yield depth, delta, self._shape_slopes(pulled, z, *shapes[depth - 1])
            delta = pulled * self.network.function.slope(z, *shapes[depth - 1])
        yield 0, delta, ()

    def _shape_slopes(self, pulled: Array, z: Array, alpha: Array, c: Array) -> tuple[Array, ...]:
        """Return the slopes in alpha and c through each unit, [S, units, n]; () unless they are learned."""
        if not self.network.learned:
            return ()
        edge, outside = np.sign(z) * c, np.abs(z) > c
        in_alpha = np.where(outside, pulled * (z - edge), 0)
        return in_alpha, np.where(outside, pulled * np.sign(z) * (1 - alpha), 0)

    def _raw_slopes(self, depth: int, in_alpha: Array, in_c: Array) -> Array:
        """Return the slopes in raw alpha and raw c, [2, ..., S]; 0 beyond the limit, where they have no effect."""
        a, b = (shape[:, 0, 0] for shape in self._shapes()[depth])
        inside = np.abs(self.network.raw(self.theta.T)[:, depth]) <= learned.LIMIT
        return np.stack([np.where(inside[0], in_alpha * a * (1 - a), 0), np.where(inside[1], in_c * b, 0)])

    def _adam(self, step: int, gradient: Array) -> None:
        dtype = self.theta.dtype.type
        factor = self.steps.schedule[step - self.steps.first]
        mean, root = corrections(step + 1, self.steps.adam)
        over = self._ended()
        own = np.where(over, 0, self.state.lr)
        rate = (own * dtype(factor / mean))[:, None]
        kept = (1 - own * self.state.decay * dtype(factor))[:, None, None]
        for weight, _ in self._layers():
            weight *= kept
        change = adam_step(gradient, self.mean, self.square, rate, root)
        self.theta -= np.where(over[:, None], 0, change)  # a rate of 0 times an infinite gradient is NaN

    def _validate(self, step: int, rule: Validation, x: Array, y: Array, weight: Array) -> None:
        """Validate the running mean of the parameters if there is one, else the parameters."""
        theta = self.theta
        if self.shares is not None:
            self.theta = self.running
        losses, _ = LOSSES[self.state.loss](self._forward(x)[1][-1], y)
        loss = (losses * weight).mean(1)
        state = self.state
        state.looks[step // rule.every - 1] = np.where(self._ended(), np.nan, loss)
        records = (state.best_loss, state.mark, state.waited)
        better, progress, waited = judge_losses(loss, *records, rule.patience, rule.tolerance)
        state.best[:, better] = self.theta[better].T
        state.best_loss[better], state.best_step[better] = loss[better], step
        state.mark[progress] = loss[progress]
        state.waited[...] = waited
        self.theta = theta


def _batch(points: StepData, index: int, step: int) -> tuple[Array, Array, Array]:
    """Return x [S or 1, in, n], y [S or 1, out, n] and weight [S or 1, n] of one step."""
    x, y = (np.moveaxis(part[index % len(part)], -1, 0) for part in (points.x, points.y))
    weight: Any = np.ones((1, points.x.shape[2]), dtype=x.dtype)
    if points.weight is not None:
        weight = points.weight[0, 0].T
    if points.rows is None:
        return np.ascontiguousarray(x), y, weight
    size = points.rows.batch
    drawn = np.stack([points.rows.draw(member, step * size, size) for member in range(len(points.rows.seeds))])
    return x[0].T[drawn].swapaxes(1, 2), y[0].T[drawn].swapaxes(1, 2), weight[0][drawn]
