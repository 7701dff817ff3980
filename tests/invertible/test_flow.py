import math
import re
import sys

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, MultivariateNormal, Normal

from plunit.invertible import (
    PLU,
    RHO,
    Annealing,
    BijectionTransform,
    Chain,
    Diverged,
    Flow,
    Frozen,
    Inverse,
    InvertibleNetwork,
    ScaleShift,
    SmoothPLU,
    conditional,
    density,
    toy,
)


def seeded(activation="smooth", blocks=3):
    return Flow(density(2, blocks, activation=activation, generator=torch.Generator().manual_seed(0)))


def trained(activation, steps, blocks=6, **options):
    flow, generator = seeded(activation, blocks), torch.Generator().manual_seed(1)
    flow.fit(lambda n: toy("gaussians", n, generator), steps, batch=256, **options)
    with torch.no_grad():
        return flow, -flow.log_prob(toy("gaussians", 4000, torch.Generator().manual_seed(2))).mean().item()


def copies(flow):
    """All that training may change, by name."""
    return {name: tensor.detach().clone() for name, tensor in (*flow.named_parameters(), *flow.named_buffers())}


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("activation", ["smooth", "flux"])
def test_the_density_integrates_to_one(activation):
    flow = seeded(activation).double()
    axis = torch.linspace(-12, 12, 801, dtype=torch.float64)
    with torch.no_grad():
        flow.bijection.bijections[0].bias.add_(0.3)
        density_on_grid = flow.log_prob(torch.cartesian_prod(axis, axis)).exp().view(801, 801)
    total = torch.trapezoid(torch.trapezoid(density_on_grid, axis), axis)
    assert total.item() == pytest.approx(1, abs=1e-3)


def test_log_prob_of_a_known_density():
    flow = Flow(ScaleShift(2))
    with torch.no_grad():
        flow.bijection.raw_scale.copy_(torch.tensor([0.5, -1.0]))
        flow.bijection.shift.copy_(torch.tensor([1.0, 2.0]))
    scale = torch.tensor([0.5, -1.0]).exp()
    expected = Independent(Normal(-torch.tensor([1.0, 2.0]) / scale, 1 / scale), 1)
    x = torch.randn(10, 2)
    torch.testing.assert_close(flow.log_prob(x), expected.log_prob(x))
    torch.testing.assert_close(flow(x), flow.log_prob(x))


@pytest.mark.parametrize("frozen", [False, True])
def test_samples_follow_the_density(frozen):
    flow = seeded("flux").double()
    flow = flow.frozen() if frozen else flow
    samples, log_prob = flow.sample_and_log_prob(20_000, generator=torch.Generator().manual_seed(0))
    assert samples.dtype == torch.float64
    torch.testing.assert_close(log_prob, flow.log_prob(samples))
    assert torch.equal(samples, flow.sample(20_000, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():  # E_p[q / p] = 1 for any density q within reach of p
        q = MultivariateNormal(samples.mean(0), 0.3 * samples.T.cov())
        assert (q.log_prob(samples) - log_prob).exp().mean().item() == pytest.approx(1, abs=0.05)


def test_another_base():
    torch.manual_seed(0)
    base = MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
    flow = Flow(Chain(PLU(2, 0.5)), base)
    x, log_prob = flow.sample_and_log_prob(100)
    torch.testing.assert_close(log_prob, flow.log_prob(x))
    torch.testing.assert_close(flow.frozen().log_prob(x), log_prob)
    with pytest.raises(ValueError, match="takes no generator"):
        flow.sample(1, generator=torch.Generator())
    with pytest.raises(ValueError, match=r"vectors of 2 features, got event shape \(\); wrap it"):
        Flow(PLU(2), Categorical(torch.ones(2)))


@pytest.mark.parametrize("base", [5, "normal", Normal])
def test_a_base_that_is_no_distribution(base):
    with pytest.raises(
        TypeError, match=r"the base must be a Distribution of torch\.distributions, got .* leave it out"
    ):
        Flow(PLU(2), base)


@pytest.mark.parametrize("x", [[[0.0, 0.0]], np.zeros((1, 2))])
@pytest.mark.parametrize("activation", ["smooth", "flux"])
def test_log_prob_takes_tensors_only(activation, x):
    with pytest.raises(TypeError, match=r"log_prob takes tensors, got \w+; torch\.as_tensor makes one of it"):
        seeded(activation).log_prob(x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("activation", ["smooth", "flux"])
def test_half_precision_has_a_likelihood_and_says_that_it_has_no_samples(activation, dtype):
    flow, x = seeded(activation), torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    expected = flow.log_prob(x)
    flow = flow.to(dtype)
    torch.testing.assert_close(flow.log_prob(x.to(dtype)).float(), expected, rtol=0.1, atol=0.2)
    with pytest.raises(TypeError, match=rf"needs float32 or float64, got {dtype}; convert the module by \.float\(\)"):
        flow.sample(3)
    assert flow.float().sample(3).isfinite().all()


@pytest.mark.parametrize("method", ["sample", "sample_and_log_prob"])
@pytest.mark.parametrize("n", [0, -3, 1.5, True, None])
def test_the_number_of_samples_is_checked(method, n):
    with pytest.raises(ValueError, match="number of samples must be an integer of at least 1, got"):
        getattr(seeded(), method)(n)


def test_training_leaves_the_gaussian_floor_with_the_right_gradient_only():
    floor = math.log(2 * math.pi) + 1
    assert trained("smooth", 120)[1] < floor - 0.7
    assert trained("flux", 120)[1] < floor - 0.5
    assert trained("plain", 200)[1] > floor - 0.05  # it starts to learn, then its kinks leave the data


def test_annealing_rho_ends_in_a_sharp_network():
    flow, nll = trained("annealed", 120, anneal=RHO)
    assert not any(isinstance(module, SmoothPLU) for module in flow.modules())
    assert nll < math.log(2 * math.pi) + 1 - 0.7


def test_a_density_that_is_to_be_annealed_is_annealed_unasked():
    flow, seen = seeded("annealed"), []
    flow.fit(torch.randn(100, 2), 10, progress=lambda *step: seen.append(type(flow.bijection.parts()[1])))
    assert seen == [SmoothPLU] * 7 + [PLU] * 3


@pytest.mark.parametrize("activation", ["annealed", "flux", "plain", "leaky"])
def test_a_second_fit_of_a_sharp_flow_has_nothing_to_anneal(activation):
    flow = seeded(activation)
    assert flow.fit(torch.randn(100, 2), 3).step == flow.fit(torch.randn(100, 2), 3, anneal=RHO).step == 3


def test_a_learned_rounding_is_not_annealed():
    with pytest.raises(ValueError, match=r"rho is learned in this bijection, .* leave anneal out, or build it with"):
        seeded("smooth").fit(torch.randn(100, 2), 3, anneal=RHO)


def test_annealing_schedule():
    schedule = Annealing(0.9, 0.1, until=0.5)
    assert schedule.value(0) == 0.9
    assert schedule.value(0.25) == pytest.approx(0.3)
    assert schedule.value(0.5) == schedule.value(1) == pytest.approx(0.1)
    stacked = [("a.raw_rho", torch.zeros(3, 2)), ("b.bias", torch.zeros(3))]
    schedule.apply(stacked, 0.25)
    torch.testing.assert_close(stacked[0][1].sigmoid(), torch.full((3, 2), 0.3))
    assert not stacked[1][1].any()


def test_fit_is_repeatable_and_reports_progress():
    data, seen = torch.randn(300, 2), []
    losses = [
        seeded()
        .fit(data, 5, generator=torch.Generator().manual_seed(4), progress=lambda *step: seen.append(step))
        .losses
        for _ in range(2)
    ]
    assert losses[0] == losses[1]
    assert seen[:5] == list(zip(range(1, 6), losses[0], strict=True))


def test_the_bar_shows_the_steps_and_the_loss(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws on a terminal only: let it take the test for one
    monkeypatch.setattr("rich._console", None)  # and look at it anew
    losses = seeded().fit(torch.randn(50, 2), 3, progress=True).losses
    shown = re.sub(r"\x1b\[[0-9;?]*\w", "", capsys.readouterr().out)
    assert "3/3" in shown
    assert f"NLL {losses[-1]:.3f}" in shown


def test_without_rich_there_is_no_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert len(seeded().fit(torch.randn(50, 2), 3, progress=True).losses) == 3
    assert capsys.readouterr().out == ""


SOME = torch.arange(20.0).reshape(10, 2)
NOT_FINITE = torch.zeros(10, 2).index_put((torch.tensor(4), torch.tensor(1)), torch.tensor(math.nan))


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (NOT_FINITE, {}, ValueError, r"finite data, got 1 values that are not .*, the first at index \(4, 1\)"),
        (lambda n: NOT_FINITE, {}, ValueError, r"finite data, got 1 values .*, the first at index \(4, 1\)"),
        (torch.empty(0, 2), {}, ValueError, r"n > 0, got a tensor of shape \(0, 2\)"),
        (torch.ones(10, 3), {}, ValueError, r"needs points of 2 features, a tensor of shape \(n, 2\), n > 0, got"),
        (torch.tensor(1.0), {}, ValueError, r"needs points of 2 features, .* got a tensor of shape \(\)"),
        (lambda n: torch.empty(0, 2), {}, ValueError, r"needs points of 2 features, .* got a tensor of shape \(0, 2\)"),
        (lambda n: [1.0, 2.0, 3.0], {}, ValueError, r"needs points of 2 features, .* got a tensor of shape \(3,\)"),
        ("points", {}, TypeError, "takes a tensor, an array or nested lists of points, .* loader of batches, got str"),
        ([[1.0, 2.0], [3.0]], {}, TypeError, "takes a tensor, an array or nested lists .* got list: .*inhomogeneous"),
        ({"x": [1.0]}, {}, TypeError, "takes a tensor, an array or nested lists of points, .* got dict"),
        (np.full((10, 2), 1e300), {}, ValueError, r"got 20 values that are not \(in torch\.float32\)"),
        (SOME.to_sparse(), {}, TypeError, r"dense tensors, got one of torch.sparse_coo; pass tensor.to_dense\(\)"),
        (SOME.to_mkldnn(), {}, TypeError, "dense tensors, got one of torch._mkldnn"),
        (lambda n: SOME.to_sparse(), {}, TypeError, "dense tensors, got one of torch.sparse_coo"),
        (SOME, {"validation": SOME.to_sparse()}, TypeError, "dense tensors, got one of torch.sparse_coo"),
        (SOME.to("meta"), {}, TypeError, "got a tensor on the device meta, which has none; pass the data themselves"),
        (SOME, {"weights": SOME[:, 0].to("meta")}, TypeError, "weights takes numbers, got a tensor on the device"),
        (SOME, {"weights": SOME[:, 0].to_sparse()}, TypeError, "weights takes dense tensors, got one of torch.sparse"),
        (torch.nested.as_nested_tensor([SOME, SOME], layout=torch.jagged), {}, TypeError, "got a nested one; pass"),
        (torch.ones(10, 2) * 1j, {}, TypeError, "takes real numbers, got a tensor of torch.complex64"),
        (np.ones((10, 2)) * 1j, {}, TypeError, "its numbers are complex128, not real; pass the real part"),
        ([[1j, 0], [0, 1]], {}, TypeError, "its numbers are complex128, not real; pass the real part"),
        (torch.ones(10, 2), {"lr": math.nan}, ValueError, "lr must be positive and finite, got nan"),
        (torch.ones(10, 2), {"lr": math.inf}, ValueError, "lr must be positive and finite, got inf"),
        (torch.ones(10, 2), {"steps": 0}, ValueError, "steps must be an integer of at least 1, got 0"),
        (torch.ones(10, 2), {"steps": 2.5}, ValueError, r"steps must be an integer of at least 1, got 2\.5"),
        (torch.ones(10, 2), {"batch": 0}, ValueError, "batch must be an integer of at least 1, got 0"),
        (torch.ones(10, 2), {"anneal": "rho"}, TypeError, "anneal takes an Annealing such as RHO, got 'rho'"),
    ],
)
def test_what_cannot_be_fitted_changes_nothing(data, options, error, message):
    flow = seeded()
    before = copies(flow)
    with pytest.raises(error, match=message):
        flow.fit(data, **{"steps": 3, **options})
    assert_same(copies(flow), before)


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (torch.Tensor.to_sparse, r"one of torch.sparse_coo; pass tensor.to_dense\(\)"),
        (torch.Tensor.to_mkldnn, "one of torch._mkldnn"),
        (lambda x: torch.nested.as_nested_tensor([x, x], layout=torch.jagged), "a nested one; pass torch.cat"),
    ],
    ids=["sparse", "mkldnn", "jagged"],
)
@pytest.mark.parametrize(
    ("who", "call"),
    [
        ("log_prob", lambda flow, other: seeded().log_prob(other(SOME))),
        ("log_prob", lambda flow, other: flow.log_prob(other(SOME), SOME)),
        ("context", lambda flow, other: flow.log_prob(SOME, other(SOME))),
        ("context", lambda flow, other: flow.sample(3, other(SOME))),
        ("context", lambda flow, other: flow.rsample(3, other(SOME))),
        ("context", lambda flow, other: flow.given(other(SOME))),
    ],
    ids=["x", "x with context", "context", "sample", "rsample", "given"],
)
def test_points_and_contexts_are_dense(who, call, other, kind):
    with pytest.raises(TypeError, match=f"^{who} takes dense tensors, got {kind}"):
        call(Flow(conditional(2, context=2, blocks=1)), other)


def test_a_frozen_flow_has_nothing_to_learn():
    with pytest.raises(ValueError, match="nothing to learn"):
        seeded().frozen().fit(torch.randn(10, 2), 3)


def test_divergence_stops_and_keeps_the_last_good_state():
    flow, states = seeded(), []

    def sampler(n):
        states.append(copies(flow))
        return torch.randn(n, 2) * (1e30 if len(states) == 4 else 1)

    with pytest.raises(Diverged, match="training diverged at step 3: the mean negative log-likelihood is") as caught:
        flow.fit(sampler, 10)
    assert caught.value.step == 3
    assert_same(copies(flow), states[2])  # of step 2, the last with a finite loss
    assert flow.log_prob(torch.randn(5, 2)).isfinite().all()


def test_divergence_through_the_learning_rate():
    flow = seeded()
    with pytest.raises(Diverged):
        flow.fit(torch.randn(100, 2), 50, lr=1e30)
    assert flow.log_prob(torch.randn(5, 2)).isfinite().all()


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
    assert isinstance(flow.bijection.parts()[1], SmoothPLU) == (bad < 8)


def test_the_optimiser_goes_on_when_corners_are_removed():
    flow = Flow(density(2, 2, activation="annealed"))
    parameters = set(flow.parameters())
    flow.fit(torch.randn(100, 2), 10, anneal=RHO)
    assert set(flow.parameters()) == parameters
    assert not any(isinstance(part, SmoothPLU) for part in flow.bijection.parts())


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 0.1),
        (0.9, -0.1),
        (1.5, 0.1),
        (math.inf, 0.1),
        (0.9, 0.1, 0.0),
    ],
)
def test_annealing_that_makes_no_sense(arguments):
    with pytest.raises(ValueError, match="got"):
        Annealing(*arguments)


@pytest.mark.parametrize("user", [Flow, Inverse, Frozen, Chain, BijectionTransform])
def test_a_network_is_not_a_bijection_but_has_one(user):
    network = InvertibleNetwork(2, 1)
    with pytest.raises(TypeError, match=r"takes bijections, got InvertibleNetwork; of a network take its \.bijection"):
        user(network)
    assert Flow(network.bijection).log_prob(torch.zeros(3, 2)).shape == (3,)


def test_a_single_step_also_ends_in_a_sharp_network():
    flow = seeded("annealed")
    flow.fit(torch.randn(100, 2), 1, anneal=RHO)
    assert not any(isinstance(module, SmoothPLU) for module in flow.modules())


def test_samples_can_be_viewed_flat():
    assert seeded().sample(5).view(-1).shape == (10,)


def test_more_bad_arguments():
    with pytest.raises(ValueError, match="until must lie in"):
        Annealing(0.9, 0.1, until=2.0)
    with pytest.raises(ValueError, match=r"one distribution, got a batch of shape \(3,\)"):
        Flow(PLU(2), Independent(Normal(torch.zeros(3, 2), torch.ones(3, 2)), 1))


def test_which_samples_have_gradients():
    assert not seeded().sample(3).requires_grad
    mean = torch.zeros(2, requires_grad=True)
    assert Flow(PLU(2), MultivariateNormal(mean, torch.eye(2))).sample_and_log_prob(3)[0].requires_grad


def test_an_annealed_flow_is_loaded_as_a_corrected_one():
    flow, other = seeded("annealed"), seeded("flux")
    flow.fit(torch.randn(100, 2), 3, anneal=RHO)
    other.load_state_dict(flow.state_dict())
    x = torch.randn(5, 2)
    assert torch.equal(other.log_prob(x), flow.log_prob(x))
