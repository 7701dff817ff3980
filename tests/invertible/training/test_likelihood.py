"""Validation, patience, the best state, and what is left of a flow when training does not come to its end."""

import math
import re

import numpy as np
import pytest
import torch

from plunit.invertible import RHO, Diverged, Flow, ScaleShift, SmoothPLU, density, toy


def gaussian_flow():
    """A flow of four parameters: all normals without correlation."""
    return Flow(ScaleShift(2))


def seeded(activation="smooth", blocks=2):
    return Flow(density(2, blocks, activation=activation, generator=torch.Generator().manual_seed(0)))


def points(n, seed=0):
    return toy("moons", n, torch.Generator().manual_seed(seed))


def copies(flow):
    return {name: tensor.detach().clone() for name, tensor in (*flow.named_parameters(), *flow.named_buffers())}


def nll(flow, x):
    with torch.no_grad():
        return -flow.log_prob(x).mean().item()


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def test_validation_is_measured_a_hundred_times_and_at_the_end():
    held = points(300, 1)
    fitted = gaussian_flow().fit(points(500), 250, validation=held, generator=generator())
    assert list(fitted.validation) == [*range(0, 250, 2), 250]
    assert len(fitted.losses) == 250
    assert fitted.validation[0] == pytest.approx(nll(gaussian_flow(), held), rel=1e-6)


def test_the_flow_has_the_parameters_that_were_best_by_validation():
    """Few points and many steps overfit: the best state is in the middle."""
    flow, held = seeded(blocks=6), points(2000, 1)
    fitted = flow.fit(points(40), 300, validation=held, generator=generator(), lr=0.05)
    assert 0 < fitted.step < 300
    assert fitted.loss == min(fitted.validation.values()) == pytest.approx(nll(flow, held), rel=1e-5)
    assert fitted.validation[300] > fitted.loss + 0.1


def test_training_is_the_same_with_and_without_validation():
    plain = seeded().fit(points(500), 30, generator=generator()).losses
    assert seeded().fit(points(500), 30, generator=generator(), validation=points(100, 1)).losses == plain


def test_patience_ends_training():
    fitted = seeded(blocks=6).fit(
        points(40), 1000, validation=points(500, 1), patience=60, generator=generator(), lr=0.05
    )
    done = len(fitted.losses)
    assert fitted.step + 60 <= done < fitted.step + 60 + 10 + 1
    assert done < 1000
    assert max(fitted.validation) == done


@pytest.mark.parametrize("clip", [0.01, 1e6])
def test_a_gradient_is_shortened_and_keeps_its_direction(clip, monkeypatch):
    found = {}
    step = torch.optim.Adam.step

    def seen(optimizer, *args, **kwargs):
        found[clip] = torch.cat([p.grad.flatten() for group in optimizer.param_groups for p in group["params"]])
        return step(optimizer, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", seen)
    flow, x = seeded(), points(64)
    flow.fit(lambda n: x, 1, clip=clip)
    fresh = seeded()
    (-fresh.log_prob(x).mean()).backward()
    plain = torch.cat([parameter.grad.flatten() for parameter in fresh.parameters()])
    torch.testing.assert_close(found[clip], plain * min(1, clip / plain.norm().item()), rtol=1e-4, atol=1e-6)


def test_a_fraction_is_set_aside_and_never_drawn():
    """Rows that are set aside can be told by their place: the flow sees every other row, and only those."""
    x, seen = points(50), []

    class Spy(ScaleShift):
        def of_data(self, x):
            seen.append((torch.is_grad_enabled(), x.detach().clone()))
            return super().of_data(x)

    fitted = Flow(Spy(2)).fit(x, 40, validation=0.3, batch=64, generator=generator())
    trained = {tuple(row) for grad, rows in seen if grad for row in rows.tolist()}
    held = {tuple(row) for grad, rows in seen if not grad and len(rows) != 64 for row in rows.tolist()}
    assert (len(trained), len(held), trained & held) == (35, 15, set())
    assert len(fitted.validation) == 41


def test_weights_are_as_repeated_points():
    """The best normal of weighted points has their weighted mean and variance."""
    x = points(200)
    weights = x[:, 0].exp()
    flow = gaussian_flow()
    flow.fit(x, 400, weights=weights, batch=4096, lr=0.05, generator=generator())
    mean = (weights[:, None] * x).sum(0) / weights.sum()
    sd = ((weights[:, None] * (x - mean).square()).sum(0) / weights.sum()).sqrt()
    scale, shift = flow.bijection.scale.detach(), flow.bijection.shift.detach()
    torch.testing.assert_close(1 / scale, sd, rtol=0, atol=0.02)
    torch.testing.assert_close(-shift / scale, mean, rtol=0, atol=0.03)


@pytest.mark.parametrize("scale", [1e308, 1e-320])
def test_weights_count_by_their_proportions_only(scale):
    """Their sum is no number in float64, or one of few digits."""
    one, other = (
        gaussian_flow().fit(points(100), 20, weights=[weight] * 100, validation=0.5, generator=generator())
        for weight in (1.0, scale)
    )
    assert other.losses == one.losses
    assert other.validation == one.validation


def test_points_of_weight_zero_are_never_drawn():
    x = torch.cat([points(100), torch.full((100, 2), 50.0)])
    weights = torch.cat([torch.ones(100), torch.zeros(100)])
    fitted = gaussian_flow().fit(x, 200, weights=weights, validation=0.5, generator=generator())
    assert max(fitted.losses) < 10
    assert max(fitted.validation.values()) < 10


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.ones(9), r"one number for each of the 10 points, got shape \(9,\)"),
        (torch.full((10,), -1.0), "finite and at least 0, and some above 0, got -1.0 to -1.0"),
        (torch.zeros(10), "and some above 0, got 0.0 to 0.0"),
        ([math.nan] * 10, "finite and at least 0"),
    ],
)
def test_weights_that_make_no_sense(weights, message):
    with pytest.raises(ValueError, match=message):
        gaussian_flow().fit(points(10), 3, weights=weights)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (np.ones(10) * 1j, "its numbers are complex128, not real"),
        (torch.ones(10) * 1j, "its numbers are complex64, not real"),
        (["a"] * 10, "could not convert string"),
    ],
)
def test_weights_that_are_no_real_numbers(weights, reason):
    with pytest.raises(TypeError, match=f"weights takes real numbers, one for each point, got .*: {reason}"):
        gaussian_flow().fit(points(10), 3, weights=weights)


@pytest.mark.parametrize(("x", "weights"), [(points(1), None), (points(10), [0.0] * 9 + [1.0])])
def test_one_point_is_no_density(x, weights):
    with pytest.raises(ValueError, match="one point has no density: give at least two different points"):
        gaussian_flow().fit(x, 3, weights=weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 5}, "patience needs validation, got patience=5 without"),
        ({"patience": 0, "validation": 0.1}, "patience must be an integer of at least 1, got 0"),
        ({"clip": 0.0}, "clip must be positive, or None, got 0.0"),
        ({"validation": 1.5}, r"fraction must lie between 0 and 1 .* got 1\.5 of 10 points"),
        ({"validation": 0.0}, r"fraction must lie between 0 and 1 .* got 0\.0 of 10 points"),
        ({"validation": 0.99}, "leave points on both sides"),
        ({"validation": 0.9}, "leave points on both sides, at least two to train with, got 0.9 of 10 points"),
        ({"validation": torch.zeros(5, 3)}, r"needs points of 2 features, .* got a tensor of shape \(5, 3\)"),
        ({"context": torch.zeros(10, 1)}, "this flow has no context"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        seeded().fit(points(10), 3, **options)


def interrupted(flow, at, error=KeyboardInterrupt, **options):
    """Fit, stopped by an error in the drawing of batch number `at`; return the states before each batch."""
    states, generator = [], torch.Generator().manual_seed(5)

    def draw(n):
        states.append(copies(flow))
        if len(states) == at:
            raise error
        return toy("moons", n, generator)

    with pytest.raises(error):
        flow.fit(draw, 50, batch=64, **options)
    return states


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_the_last_good_state(error):
    flow = seeded()
    states = interrupted(flow, 20, error)
    assert_same(copies(flow), states[-2])  # of the last step whose loss was looked at
    assert flow.log_prob(points(5)).isfinite().all()


def test_an_interruption_leaves_the_best_state_by_validation():
    flow, other, held = seeded(), seeded(), points(100, 3)
    losses = []
    for state in interrupted(flow, 30, validation=held, lr=0.3)[:-1]:
        other.load_state_dict({name: state[name] for name in other.state_dict()})
        losses.append(nll(other, held))
    assert nll(flow, held) == min(losses) < losses[-1]


def test_an_interruption_in_the_middle_of_a_step_leaves_no_mixture(monkeypatch):
    flow, seen = seeded(), []
    step = torch.optim.Adam.step

    def torn(optimizer, *args, **kwargs):
        seen.append(copies(flow))
        if len(seen) < 5:
            return step(optimizer, *args, **kwargs)
        with torch.no_grad():
            next(flow.parameters()).fill_(math.nan)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.optim.Adam, "step", torn)
    with pytest.raises(KeyboardInterrupt):
        flow.fit(points(100), 50)
    assert_same(copies(flow), seen[-1])


def test_annealed_flows_are_kept_without_corners_only():
    flow, held = seeded("annealed"), points(200, 1)
    fitted = flow.fit(points(300), 100, validation=held, generator=generator())
    assert fitted.step >= 70
    assert not any(isinstance(module, SmoothPLU) for module in flow.modules())
    assert fitted.loss == pytest.approx(nll(flow, held), rel=1e-5)


def test_patience_waits_for_the_end_of_annealing():
    fitted = seeded("annealed").fit(points(300), 100, validation=points(50, 1), patience=1, anneal=RHO)
    assert len(fitted.losses) > 70


def test_divergence_with_validation_keeps_the_best():
    flow, held = seeded(), points(100, 1)
    start = nll(flow, held)
    with pytest.raises(Diverged):
        flow.fit(points(100), 50, lr=1e30, validation=held)
    assert nll(flow, held) <= start


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_flow_is_given_back(training):
    flow = seeded("flux").train(training)
    modes = []
    flow.fit(lambda n: (modes.append(flow.training), points(n))[1], 3)
    assert flow.training == training
    assert modes[-1]


def test_what_is_returned_says_what_was_done():
    fitted = seeded().fit(points(100), 3)
    assert (fitted.validation, fitted.step, fitted.loss) == ({}, 3, fitted.losses[-1])
    assert re.fullmatch(r"Fitted\(3 steps, parameters of step 3, loss \d\.\d+\)", repr(fitted))
