"""Training by maximum likelihood: the loop, validation, patience, annealing, and what is left when training stops."""

import math
import re
import sys

import numpy as np
import pytest
import torch

from plunit.invertible import PLU, RHO, Diverged, Flow, ScaleShift, SmoothPLU, density, toy


def gaussian_flow():
    """A flow of four parameters: all normals without correlation."""
    return Flow(ScaleShift(2))


def seeded(activation="smooth", blocks=2):
    return Flow(density(2, blocks, activation=activation, generator=generator(0)))


def points(n, seed=0):
    return toy("moons", n, generator(seed))


def copies(flow):
    return {name: tensor.detach().clone() for name, tensor in (*flow.named_parameters(), *flow.named_buffers())}


def nll(flow, x):
    with torch.no_grad():
        return -flow.log_prob(x).mean().item()


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def test_the_flow_has_the_parameters_that_were_best_by_validation_and_patience_ends_training():
    """Few points and many steps overfit: the best state is in the middle."""
    held, options = points(500, 1), {"validation": points(500, 1), "lr": 0.05}
    flow = seeded(blocks=4)
    fitted = flow.fit(points(40), 300, **options, generator=generator())
    assert 0 < fitted.step < 300
    assert fitted.loss == min(fitted.validation.values()) == pytest.approx(nll(flow, held), rel=1e-5)
    assert fitted.validation[300] > fitted.loss + 0.1
    fitted = seeded(blocks=4).fit(points(40), 1000, **options, patience=60, generator=generator())
    done = len(fitted.losses)
    assert done == fitted.step + 60  # validation is measured every 10 steps
    assert max(fitted.validation) == done < 1000


def test_validation_is_measured_a_hundred_times_and_at_the_end_and_changes_no_step():
    held = points(300, 1)
    fitted = gaussian_flow().fit(points(500), 250, validation=held, generator=generator())
    assert list(fitted.validation) == [*range(0, 250, 2), 250]
    assert fitted.validation[0] == pytest.approx(nll(gaussian_flow(), held), rel=1e-6)
    seen = []
    plain = gaussian_flow().fit(points(500), 250, generator=generator(), progress=lambda *step: seen.append(step))
    assert (plain.losses, plain.validation, plain.step, plain.loss) == (fitted.losses, {}, 250, fitted.losses[-1])
    assert seen == list(zip(range(1, 251), plain.losses, strict=True))


@pytest.mark.parametrize("clip", [0.01, 1e6])
def test_a_gradient_is_shortened_and_keeps_its_direction(clip, monkeypatch):
    found, step = [], torch.optim.Adam.step

    def seen(optimizer, *args, **kwargs):
        found.append(torch.cat([p.grad.flatten() for group in optimizer.param_groups for p in group["params"]]))
        return step(optimizer, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", seen)
    flow, x = seeded(), points(64)
    flow.fit(lambda n: x, 1, clip=clip)
    fresh = seeded()
    (-fresh.log_prob(x).mean()).backward()
    plain = torch.cat([parameter.grad.flatten() for parameter in fresh.parameters()])
    torch.testing.assert_close(found[0], plain * min(1, clip / plain.norm().item()), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("fraction", "count"), [(0.3, 15), (0.25, 13)])
def test_a_fraction_is_set_aside_and_never_drawn(fraction, count):
    """Rows that are set aside can be told by their place: the flow sees every other row, and only those."""
    x, seen = points(50), []

    class Spy(ScaleShift):
        def forward(self, x):
            seen.append((torch.is_grad_enabled(), x.detach().clone()))
            return super().forward(x)

    fitted = Flow(Spy(2)).fit(x, 40, validation=fraction, batch=64, generator=generator())
    trained = {tuple(row) for grad, rows in seen if grad for row in rows.tolist()}
    held = {tuple(row) for grad, rows in seen if not grad and len(rows) != 64 for row in rows.tolist()}
    assert (len(trained), len(held), trained & held) == (50 - count, count, set())
    assert len(fitted.validation) == 41


def interrupted(flow, at, error=KeyboardInterrupt, **options):
    """Fit, stopped by an error in the drawing of batch number `at`; return the states before each batch."""
    states, random = [], generator(5)

    def draw(n):
        states.append(copies(flow))
        if len(states) == at:
            raise error
        return toy("moons", n, random)

    with pytest.raises(error):
        flow.fit(draw, 50, batch=64, **options)
    return states


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_the_last_good_state(error):
    flow = seeded()
    states = interrupted(flow, 20, error)
    assert_same(copies(flow), states[-2])  # of the last step whose loss was looked at


def test_an_interruption_leaves_the_best_state_by_validation():
    flow, other, held = seeded(), seeded(), points(100, 3)
    losses = []
    for state in interrupted(flow, 30, validation=held, lr=0.3)[:-1]:
        other.load_state_dict({name: state[name] for name in other.state_dict()})
        losses.append(nll(other, held))
    assert nll(flow, held) == min(losses) < losses[-1]


def test_an_interruption_in_the_middle_of_a_step_leaves_no_mixture(monkeypatch):
    flow, seen, step = seeded(), [], torch.optim.Adam.step

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


@pytest.mark.parametrize("patience", [None, 1])
def test_annealed_flows_are_kept_without_corners_only(patience):
    flow, held, seen = seeded("annealed"), points(200, 1), []
    parameters = set(flow.parameters())
    options = {"validation": held, "patience": patience, "generator": generator()}
    fitted = flow.fit(points(300), 101, **options, progress=lambda *_: seen.append(type(flow.bijection.parts()[1])))
    assert seen == [SmoothPLU] * 70 + [PLU] * (len(fitted.losses) - 70)  # annealed unasked; patience waits for the end
    assert fitted.step >= 70
    assert set(flow.parameters()) == parameters  # the optimiser goes on with them
    assert fitted.loss == pytest.approx(nll(flow, held), rel=1e-5)
    corrected = seeded("flux")
    corrected.load_state_dict(flow.state_dict())
    assert torch.equal(corrected.log_prob(held), flow.log_prob(held))


def trained(activation, steps, **options):
    flow, random = seeded(activation, 6), generator()
    flow.fit(lambda n: toy("gaussians", n, random), steps, batch=256, **options)
    return nll(flow, toy("gaussians", 4000, generator(2)))


def test_training_leaves_the_gaussian_floor_with_the_right_gradient_only():
    floor = math.log(2 * math.pi) + 1
    assert trained("smooth", 120) < floor - 0.7
    assert trained("annealed", 120, anneal=RHO) < floor - 0.7
    assert trained("flux", 120) < floor - 0.5
    assert trained("plain", 200) > floor - 0.05  # it starts to learn, then its kinks leave the data


@pytest.mark.parametrize("activation", ["annealed", "flux", "plain", "leaky"])
def test_a_second_fit_of_a_sharp_flow_has_nothing_to_anneal(activation):
    flow = seeded(activation)
    assert flow.fit(torch.randn(100, 2), 1).step == flow.fit(torch.randn(100, 2), 1, anneal=RHO).step == 1
    assert not any(isinstance(module, SmoothPLU) for module in flow.modules())  # a single step ends sharp, too


def test_the_bar_shows_the_steps_and_the_loss(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws on a terminal only: let it take the test for one
    monkeypatch.setattr("rich._console", None)  # and look at it anew
    losses = seeded().fit(torch.randn(50, 2), 3, progress=True).losses
    shown = re.sub(r"\x1b\[[0-9;?]*\w", "", capsys.readouterr().out)
    assert "3/3" in shown
    assert f"NLL {losses[-1]:.3f}" in shown
    monkeypatch.setitem(sys.modules, "rich.progress", None)  # without rich there is no bar
    assert len(seeded().fit(torch.randn(50, 2), 3, progress=True).losses) == 3
    assert capsys.readouterr().out == ""


def test_divergence_in_the_last_step_is_seen():
    flow = seeded()
    before = copies(flow)
    with pytest.raises(Diverged) as stop:
        flow.fit(torch.randn(100, 2), 1, lr=1e6)
    assert stop.value.step == 1
    assert_same(copies(flow), before)


@pytest.mark.filterwarnings("ignore:columns 0, 1 are far from standard")  # which is what the test wants
@pytest.mark.parametrize("bad", [0, 2, 7, 8])  # at once, with corners, the first without, and later
def test_divergence_restores_what_was_annealed_and_the_corners(bad):
    flow = seeded("annealed", 2)
    states = [copies(flow)]

    def sampler(n):
        states.append(copies(flow))
        return 1e30 * torch.randn(n, 2) if len(states) == bad + 2 else torch.randn(n, 2)

    with pytest.raises(Diverged) as stop:
        flow.fit(sampler, 10, anneal=RHO)
    assert stop.value.step == bad
    assert_same(copies(flow), states[bad])  # of the step before, or of the start
    assert flow.log_prob(torch.randn(5, 2)).isfinite().all()
    assert isinstance(flow.bijection.parts()[1], SmoothPLU) == (bad < 8)


def small_fit(steps=3, **options):
    return gaussian_flow().fit(points(40), steps, generator=generator(), **options)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"steps": np.int64(3), "batch": np.int32(8)}, {"steps": 3, "batch": 8}),
        ({"lr": np.float32(0.5), "clip": torch.tensor(0.5), "progress": None}, {"lr": 0.5, "clip": 0.5}),
        ({"validation": np.float32(0.5), "patience": np.int64(2)}, {"validation": 0.5, "patience": 2}),
    ],
)
def test_numbers_of_numpy_are_numbers_and_gradients_need_not_be_enabled(given, plain):
    with torch.no_grad():
        found = small_fit(**given)
        assert not torch.is_grad_enabled()
    assert found == small_fit(**plain)


STEPS = 11


def test_the_steps_follow_a_half_cosine_to_zero(monkeypatch):
    found, step = [], torch.optim.Adam.step

    def seen(optimizer, *args, **kwargs):
        found.append(optimizer.param_groups[0]["lr"])
        return step(optimizer, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", seen)
    small_fit(STEPS, lr=0.3)
    assert found == pytest.approx([0.3 * (1 + math.cos(math.pi * step / STEPS)) / 2 for step in range(STEPS)])


@pytest.mark.parametrize("activation", ["annealed", "smooth"])
def test_a_loss_is_that_of_the_rho_of_its_step(activation):
    flow, seen = seeded(activation), []
    flow.fit(points(50), STEPS, progress=lambda *_: seen.append(getattr(flow.bijection.parts()[1], "rho", None)))
    if activation == "annealed":
        assert [rho[0].item() for rho in seen[:7]] == pytest.approx([RHO.rho(step, STEPS) for step in range(7)], 1e-5)
        assert seen[7:] == [None] * 4
    else:
        assert all(rho is not None for rho in seen)


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
def test_weights_count_by_their_proportions_only_and_points_of_weight_zero_are_never_drawn(scale):
    """The sum of such weights is no number in float64, or one of few digits."""
    x, weights = torch.cat([torch.full((100, 2), 50.0), points(100)]), torch.cat([torch.zeros(100), torch.ones(100)])
    one, other = (
        gaussian_flow().fit(x, 200, weights=factor * weights.double(), validation=0.5, generator=generator())
        for factor in (1.0, scale)
    )
    assert (other.losses, other.validation) == (one.losses, one.validation)
    assert max(*one.losses, *one.validation.values()) < 10
