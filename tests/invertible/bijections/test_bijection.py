"""What holds for every bijection: round trip, log-determinants, shapes, precision, and what PyTorch does to modules."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from plunit.invertible import LU, PLU, Chain, Frozen, Inverse, Orthogonal, SmoothPLU

DIRECTIONS = [pytest.param(lambda b: b, id="forward"), pytest.param(lambda b: b.inverse, id="inverse")]


def slogdet(function, x):
    """By autograd, row by row of the Jacobian, in one evaluation: at a kink another might be on its other side."""
    x = x.detach().requires_grad_()
    y, log_det = function(x)
    rows = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0] for column in y.unbind(-1)]
    return torch.linalg.slogdet(torch.stack(rows, -2))[1], log_det


@pytest.mark.parametrize("features", [1, 2, 16])
def test_log_det_is_that_of_the_jacobian_in_both_directions(make, points, bijection_name, features):
    bijection = make(bijection_name, features)
    x = points(bijection, 1000)
    y, log_det = bijection(x)
    assert log_det.shape == x.shape[:-1]
    torch.testing.assert_close(*slogdet(bijection, x), rtol=0, atol=1e-10)
    if bijection_name == "Tanh":
        y = y.detach().clamp(-0.99, 0.99)
    torch.testing.assert_close(*slogdet(bijection.inverse, y), rtol=0, atol=1e-10)


def next_to_a_kink(bijection, x, step):
    """Return the rows from which a step along an axis makes the log-determinant jump."""
    steps = step * torch.cat([torch.eye(x.shape[-1]), -torch.eye(x.shape[-1])]).to(x)
    return ((bijection(x + steps[:, None])[1] - bijection(x)[1]).abs() > 0.01).any(0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 3e-4)])
def test_round_trip_both_ways(make, points, bijection_name, dtype, tolerance):
    bijection = make(bijection_name, 5, dtype)
    x = points(bijection, 500, dtype)
    if bijection_name == "Tanh":
        x = x.clamp(-3, 3)
    y, log_det = bijection(x)
    back, inverse_log_det = bijection.inverse(y)
    assert y.dtype == log_det.dtype == back.dtype == dtype
    torch.testing.assert_close(back, x, rtol=0, atol=tolerance)
    step, error = (1e-9, 1e-9) if dtype == torch.float64 else (1e-4, 1e-3)
    compared = torch.ones_like(log_det, dtype=torch.bool)
    if dtype == torch.float32 or isinstance(bijection, Chain):  # a point next to a kink may come back beyond it
        compared = ~next_to_a_kink(bijection, x, step)
        assert compared.double().mean() > 0.6
    torch.testing.assert_close(inverse_log_det[compared], -log_det[compared], rtol=0, atol=error)
    target = x.clamp(-0.9, 0.9) if bijection_name == "Tanh" else x
    torch.testing.assert_close(bijection(bijection.inverse(target)[0])[0], target, rtol=0, atol=tolerance)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (7, 3), (2, 0, 3), (2, 4, 5, 3)])
def test_any_batch_shape(make, bijection_name, shape):
    bijection = make(bijection_name, 3)
    x = torch.randn(shape, dtype=torch.float64)
    y, log_det = bijection(x)
    assert y.shape == shape
    assert log_det.shape == shape[:-1]
    rows = [bijection(row)[0] for row in x.reshape(-1, 3)]
    if rows:
        torch.testing.assert_close(y.reshape(-1, 3), torch.stack(rows))
    torch.testing.assert_close(Frozen(bijection)(x), (y, log_det))
    back, inverse_log_det = bijection.inverse(y)
    assert back.shape == shape
    assert inverse_log_det.shape == shape[:-1]
    (y.sum() + log_det.sum()).backward() if y.requires_grad else None


def test_state_dict_and_deepcopy(make, bijection_name):
    bijection = make(bijection_name, 3)
    twin = copy.deepcopy(bijection)
    x = torch.randn(10, 3, dtype=torch.float64)
    assert torch.equal(twin(x)[0], bijection(x)[0])
    other = make(bijection_name, 3, seed=99)  # other parameters, permutations and signs
    other.load_state_dict(bijection.state_dict())
    torch.testing.assert_close(other(x), bijection(x), rtol=0, atol=0)


def test_frozen_is_the_same_map_without_parameters(make, bijection_name):
    bijection = make(bijection_name, 3)
    frozen = copy.deepcopy(Frozen(bijection))
    assert not list(frozen.parameters())
    x = torch.randn(10, 3, dtype=torch.float64)
    torch.testing.assert_close(frozen(x), bijection(x))
    torch.testing.assert_close(frozen.inverse(x / 9), bijection.inverse(x / 9))
    assert torch.equal(Frozen(Chain(Inverse(frozen)))(x / 9)[0], frozen.inverse(x / 9)[0])
    assert frozen.lipschitz() == pytest.approx(bijection.lipschitz())
    assert frozen.state_dict() == {}


def test_lipschitz_bounds_hold(make, bijection_name):
    bijection = make(bijection_name, 4)
    forward, backward = bijection.lipschitz()
    a, b = 2 * torch.randn(2, 2000, 4, dtype=torch.float64)
    stretch = (bijection(a)[0] - bijection(b)[0]).norm(dim=-1) / (a - b).norm(dim=-1)
    assert stretch.max() <= forward * (1 + 1e-9)
    assert 1 / stretch.min() <= backward * (1 + 1e-9)


def test_vmap_over_stacked_parameters(make, bijection_name):
    members = [Chain(make(bijection_name, 2)) for _ in range(3)]  # each parametrised layer has a class of its own
    for seed, member in enumerate(members):
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in member.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
    parameters, buffers = stack_module_state(members)
    x = torch.randn(3, 20, 2, dtype=torch.float64)
    y, log_det = vmap(lambda p, b, x: functional_call(members[0], (p, b), (x,)), (0, 0, 0))(parameters, buffers, x)
    alone = [member(points) for member, points in zip(members, x, strict=True)]
    torch.testing.assert_close(list(zip(y, log_det, strict=True)), alone)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("frozen", [False, True])
def test_compile(frozen, direction):
    torch.manual_seed(0)
    chain = Chain(LU(2), SmoothPLU(2, learnable=True), Orthogonal(2), PLU(2, learnable=True, boundary=True))
    function = direction(Frozen(chain) if frozen else chain)
    x = torch.randn(16, 2)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))
    if not frozen:
        torch.testing.assert_close(gradients(chain, compiled, x), gradients(chain, function, x))


def gradients(chain, direction, x):
    y, log_det = direction(x)
    return torch.autograd.grad(y.sum() + log_det.sum(), list(chain.parameters()))


def test_a_state_with_a_fault_changes_nothing(make, bijection_name):
    bijection, other = make(bijection_name, 3), make(bijection_name, 3, seed=99)
    state = {name: value.clone() for name, value in other.state_dict().items()}
    floats = [name for name, value in state.items() if value.is_floating_point()]
    if not floats:
        pytest.skip("nothing to spoil")
    state[floats[-1]].fill_(torch.nan)
    before = copy.deepcopy(bijection.state_dict())
    with pytest.raises(RuntimeError, match="must be finite"):
        bijection.load_state_dict(state)
    assert all(torch.equal(value, before[name]) for name, value in bijection.state_dict().items())


@pytest.mark.parametrize(
    "smooth",
    [Inverse(SmoothPLU(2)), Chain(LU(2), SmoothPLU(2)), Chain(Inverse(SmoothPLU(2)))],
    ids=["Inverse", "Chain", "both"],
)
def test_sharp_reaches_through_what_is_made_of_others(smooth):
    sharp = smooth.sharp()
    assert type(sharp) is type(smooth)
    assert not any(isinstance(module, SmoothPLU) for module in sharp.modules())


REFUSED = [
    (torch.zeros(4), ValueError, r"expected 3 features on the last axis, got a tensor of shape \(4,\)"),
    (torch.zeros(5, 2), ValueError, r"expected 3 features on the last axis, got a tensor of shape \(5, 2\)"),
    (torch.zeros(()), ValueError, r"expected 3 features on the last axis, got a tensor of shape \(\)"),
    *(
        (torch.ones(2, 3).to(dtype), TypeError, f"got {dtype}; convert the input")
        for dtype in (torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64)
    ),
    ([[1.0, 2.0, 3.0]], TypeError, r"expects a tensor, got list; convert it with torch\.as_tensor"),
    (torch.ones(1, 3).numpy(), TypeError, r"expects a tensor, got ndarray"),
]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_inputs_that_no_bijection_takes(make, bijection_name, direction, frozen):
    bijection = make(bijection_name, 3, torch.float32)
    function = direction(Frozen(bijection) if frozen else bijection)
    holds_numbers = any(tensor.is_floating_point() for tensor in bijection.state_dict().values())
    for x, error, message in REFUSED:
        if holds_numbers or not (isinstance(x, torch.Tensor) and x.is_floating_point() and x.shape == (2, 3)):
            with pytest.raises(error, match=message):
                function(x)
    with torch.autocast("cpu"), pytest.raises(TypeError, match=r"needs full precision .* disable autocast"):
        function(torch.zeros(4, 3))
