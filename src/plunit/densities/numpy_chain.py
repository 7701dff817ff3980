"""Training steps of a density network in NumPy: the readable form of `chain.advance`.

The steps are Adam's (`plunit.ensemble.adam`). The boundary term estimates the density at a kink from the k-th nearest
sample (Loftsgaarden and Quesenberry, 1965; docs/glossary.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plunit import learned
from plunit.densities.chain import Member, MemberSteps, Sample, check_looks, mean_loss, mean_shares, nearest
from plunit.densities.density_network import DensityNetwork
from plunit.ensemble.adam import adam_step, corrections, judge_losses
from plunit.ensemble.arrays import Array
from plunit.ensemble.training_data import Rows

REFRESH = 8  # steps between two estimates of the density at kinks


def advance(members: Sequence[Member], steps: MemberSteps, threads: int | None = None) -> None:
    """Train all members in place, one after the other; `threads` is not used."""
    for member in members:
        with np.errstate(all="ignore"):  # members that diverge
            _advance_member(member, steps)


def _advance_member(member: Member, steps: MemberSteps) -> None:
    check_looks(member, steps)
    rho, share = np.broadcast_to(steps.rho, steps.rate.shape), mean_shares(member.steps, steps.count)
    drawn = Rows(steps.training.x, None, batch=steps.batch, seeds=[member.seed])
    for step in range(steps.count):
        if steps.tests and member.waited >= steps.patience:
            break
        rows = drawn.draw(0, member.steps * steps.batch, steps.batch)
        batch = Sample(steps.training.x[rows], None if steps.training.weight is None else steps.training.weight[rows])
        if _is_kinked(member, rho[step]) and member.steps % REFRESH == 0:
            member.radii[...] = radii(member_network(member, member.theta, rho[step]), batch.x)
        gradient = differentiate(member_network(member, member.theta, rho[step]), batch)
        _adam(member, gradient, steps.rate[step], share[step])
        member.steps += 1
        if steps.tests and member.steps % steps.every == 0:
            _validate(member, mean_loss(member_network(member, member.average, rho[step]), steps.tests), steps)


def _is_kinked(member: Member, rho: float) -> bool:
    return member.architecture.activation != "smooth" and rho == 0


def member_network(member: Member, theta: Array, rho: float) -> DensityNetwork:
    """Return the network of a member with given parameters."""
    return DensityNetwork(member.architecture, theta, member.order, member.sign, float(rho), member.radii)


def radii(network: DensityNetwork, x: Array) -> Array:
    """Return the distance from each kink to the k-th nearest of the rows x, [blocks, n]."""
    k, found, h = nearest(len(x)), [], x.T
    for i, units in enumerate(network.units):
        u = network.weights[i] @ h + network.views["bias"][i][:, None]
        distance = np.abs((np.abs(u) if units.sides == 2 else u) - units.c)
        found.append(np.partition(distance, k - 1, axis=1)[:, k - 1])
        h, _ = units.forward(u)
    return np.reshape(found, (len(found), len(x.T)))


def differentiate(network: DensityNetwork, sample: Sample) -> Array:
    """Return the gradient of the weighted mean of |z|^2 / 2 - log|det dz/dx|, as one vector."""
    form, views = network.architecture, network.views
    share = (np.ones(len(sample.x)) if sample.weight is None else sample.weight).astype(network.theta.dtype)
    share = share / len(share)
    inputs, before, h = [], [], sample.x.T
    for i, weight in enumerate(network.weights):
        inputs.append(h)
        before.append(weight @ h + views["bias"][i][:, None])
        h = network.units[i].forward(before[i])[0] if i < form.blocks else before[i]
    gradient = np.zeros_like(network.theta)
    found, delta = form.views(gradient), h * share
    for i in reversed(range(form.maps)):
        found["bias"][i] = delta.sum(1)
        _split(network, i, delta @ inputs[i].T, found, share.sum())
        if i:
            pulled = network.weights[i].T @ delta
            delta, sums = network.units[i - 1].backward(before[i - 1], pulled, -share)
            _shape(network, i - 1, sums, found)
    for name in ("log_diagonal", "alpha", "c", "rho"):
        if name in found:  # parameters beyond the limit have no effect
            found[name][np.abs(views[name]) > learned.LIMIT] = 0
    return gradient


def _split(network: DensityNetwork, i: int, in_weight: Array, found: dict[str, Array], total: float) -> None:
    """Write the gradients in L, U and the log-diagonal, from the gradient in W = P L U."""
    lower, upper = network.factors[i]
    in_product = np.empty_like(in_weight)
    in_product[network.order[i]] = in_weight
    in_lower, in_upper = in_product @ upper.T, lower.T @ in_product
    rows, columns = np.tril_indices(len(lower), -1)
    found["lower"][i], found["upper"][i] = in_lower[rows, columns], in_upper[columns, rows]
    found["log_diagonal"][i] = in_upper.diagonal() * upper.diagonal() - total


def _shape(network: DensityNetwork, block: int, sums: dict[str, Array], found: dict[str, Array]) -> None:
    """Write the gradients in log alpha, log c and logit rho, where w = rho c."""
    units = network.units[block]
    c = units.c[:, 0]
    rho = 0.0 if units.w is None else units.w[:, 0] / c
    found["alpha"][block] = sums["alpha"] * units.alpha[:, 0]
    if "c" in found:
        found["c"][block] = (sums["c"] + rho * sums["w"]) * c
    if "rho" in found:
        found["rho"][block] = sums["w"] * c * rho * (1 - rho)


def _adam(member: Member, gradient: Array, rate: float, share: float) -> None:
    dtype = member.theta.dtype.type
    divisor, root = corrections(member.steps + 1)
    member.theta -= adam_step(gradient, member.mean, member.square, dtype(rate / divisor), root)
    member.average += (member.theta - member.average) * dtype(share)


def _validate(member: Member, loss: float, steps: MemberSteps) -> None:
    """Record the loss of the running mean, in the dtype of the parameters."""
    loss = float(member.theta.dtype.type(loss))
    member.looks[member.steps // steps.every - 1] = loss
    better, progress, waited = judge_losses(loss, member.loss, member.mark, member.waited)
    if better:
        member.best[...] = member.average
        member.loss, member.best_step = loss, member.steps
    member.mark, member.waited = loss if progress else member.mark, int(waited)
