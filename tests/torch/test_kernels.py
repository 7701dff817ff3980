"""Both implementations of PLU: the native kernel and PyTorch's own ops (`composite`) give the same bits."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from oracles import LARGE
from torch.utils._python_dispatch import TorchDispatchMode

from plunit.torch import PLU, composite, has_native, op, plu

native_only = pytest.mark.skipif(not has_native(), reason="the native op was not built")

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
NUMBERS = [(0.1, 1.0), (0.1, 0.7), (0.37, 0.0), (0.5, 1.0), (1.0, 1.0), (4.0, 0.3), (0.1, 1e-40)]
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def native():
    """The registered operators, with the functions of `composite`."""
    ops = torch.ops.plunit
    return SimpleNamespace(
        forward=lambda x, alpha, c, outward: ops.plu(x, alpha, c),
        backward=lambda grad, kept, alpha, c: ops.plu_backward(grad, kept, alpha, c),
    )


LOADERS = {"native": native, "composite": lambda: composite}
"""The implementations, each with the function that returns it."""


@pytest.fixture(params=[pytest.param(name, marks=native_only if name == "native" else ()) for name in LOADERS])
def implementation(request):
    return LOADERS[request.param]()


def points(c, dtype, count=3000):
    """Ordinary numbers, the closest neighbours of both kinks, and special values."""
    near = torch.tensor(c).to(dtype).view(BITS[dtype.itemsize]) + torch.arange(-5, 40, dtype=BITS[dtype.itemsize])
    near = near.clamp(min=0).view(dtype)
    special = torch.tensor([torch.inf, -torch.inf, 0.0, 1e-40, 60000.0], dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    return torch.cat([(torch.randn(count, generator=generator) * 2).to(dtype), near, -near, special])


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype
    assert torch.equal(actual.view(BITS[actual.itemsize]), expected.view(BITS[actual.itemsize]))


@native_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("alpha", "c"), NUMBERS)
def test_values_rounded_outward_are_those_of_the_native_kernel_to_the_bit(implementation, alpha, c, dtype):
    x = points(c, dtype)
    assert_same_bits(implementation.forward(x, alpha, c, outward=True), torch.ops.plunit.plu(x, alpha, c))


@native_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("alpha", "c"), NUMBERS)
@pytest.mark.parametrize("from_output", [True, False])
def test_gradients_are_those_of_the_native_kernel_to_the_bit(implementation, alpha, c, dtype, from_output):
    x = points(c, dtype)
    y = torch.ops.plunit.plu(x, alpha, c)
    grad = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    grad[:4] = torch.tensor([torch.inf, -torch.inf, -0.0, torch.nan])
    got = implementation.backward(grad, y if from_output else x, alpha, c)
    assert_same_bits(got.nan_to_num(5.0), torch.ops.plunit.plu_backward(grad, y, alpha, c).nan_to_num(5.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("alpha", "c"), [*NUMBERS, (0.0, 1.0)])
def test_the_composite_keeps_the_input_inside_and_is_within_a_rounding_step_outside(alpha, c, dtype):
    x = points(c, dtype)
    y, wide = composite.forward(x, alpha, c, outward=False), x.double()
    edge = torch.tensor(c, dtype=torch.float64 if dtype == torch.float64 else torch.float32).double()
    inside = wide.abs() <= edge
    assert torch.equal(y[inside], x[inside])
    exact = (
        torch.where(wide.isinf() & (alpha == 0), 0, wide.abs() - edge)
        * np.dtype(np.float64 if dtype == torch.float64 else np.float32).type(alpha)
        + edge
    )
    step = 2 * torch.finfo(dtype).eps * exact.abs() + torch.finfo(dtype).smallest_normal
    wrong = ~inside & ~((y.double().abs() - exact).abs() <= step) & ~(y.isinf() & (exact > torch.finfo(dtype).max))
    assert x[wrong].tolist() == []
    assert (y * x.sign() >= 0).all()


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_nan_stays_and_an_infinity_stays_or_becomes_c(implementation, alpha):
    if alpha == 0 and isinstance(implementation, SimpleNamespace):
        pytest.skip("alpha = 0 is not for the native kernel")
    y = implementation.forward(torch.tensor([torch.nan, torch.inf, -torch.inf]), alpha, 2.0, outward=alpha > 0)
    assert y[0].isnan()
    assert y[1:].tolist() == ([2, -2] if alpha == 0 else [torch.inf, -torch.inf])


@pytest.mark.parametrize("alpha", [0.1, 0.7, 2.0])
def test_every_finite_number_is_within_the_largest_one(implementation, alpha):
    x = torch.tensor(LARGE)
    for outward in (False, True):
        y = implementation.forward(x, alpha, torch.finfo(torch.float32).max, outward=outward)
        assert torch.equal(y, x)


class Ops(TorchDispatchMode):
    """Count the ops that compute something."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not any(word in str(func) for word in ("detach", "view", "reshape", "expand", "alias")):
            self.names.append(str(func))
        return func(*args, **kwargs or {})


@pytest.mark.parametrize(
    ("module", "most"),
    [
        (lambda: PLU(), 4),
        (lambda: PLU(alpha=0.7), 5),
        (lambda: PLU(alpha=0.0), 2),
        (lambda: PLU(learnable=True), 24),
        (lambda: PLU(learnable=True, num_parameters=8), 24),
    ],
)
def test_number_of_ops_without_a_kernel(monkeypatch, module, most):
    monkeypatch.setattr(op, "_native", None)
    module = module()
    x, grad = torch.randn(4, 8, 5, requires_grad=True), torch.randn(4, 8, 5)
    with Ops() as ops:
        torch.autograd.grad(module(x), [x, *module.parameters()], grad)
    assert len(ops.names) <= most


@pytest.mark.parametrize("alpha", [0.0, 1e-46])
@pytest.mark.parametrize("inplace", [False, True])
def test_a_slope_below_all_normal_numbers_is_flat_without_a_kernel(monkeypatch, alpha, inplace):
    monkeypatch.setattr(op, "_native", None)
    x = torch.tensor([-torch.inf, -2.0, 0.5, 2.0, torch.inf], requires_grad=True)
    y = plu(x * 1, alpha, 1.0, inplace=inplace)
    assert y.tolist() == [-1, -1, 0.5, 1, 1]
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize("c", [0.0, 1e-45, 1e-40, 0.3, 0.7, 1.0, 1000.1, 65504.0, 1e5, 1e300])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_rim_is_the_least_number_above_c(c, dtype):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    edge = torch.tensor(c, dtype=torch.float64).to(wide)
    rim, exact = composite._find_edge(c, dtype)
    if edge.isinf():
        return
    assert exact == (edge.to(dtype).to(wide) == edge).item()
    assert torch.tensor(rim, dtype=wide) > edge
    below = torch.tensor(rim, dtype=dtype).view(BITS[dtype.itemsize]) - 1
    assert below.view(dtype).to(wide) <= edge


WAITS = ("copy", "_local_scalar_dense", "lift_fresh", "nonzero", "item")
"""Ops that copy between host and device or wait for one; none of them can be recorded in a CUDA graph."""


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_is_copied_to_a_gpu_or_waits_for_one(learned, dtype):
    x, grad = (torch.empty(4, 8, 5, device="meta", dtype=dtype) for _ in range(2))  # a device that is not the host
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    parameters = (torch.empty(8, 1, device="meta", dtype=wide),) * 2 if learned else (0.1, 0.7)
    with Ops() as ops, torch.no_grad():
        y = plu(x, *parameters)
        backward = composite.backward_learned if learned else composite.backward
        results = backward(grad, x, *parameters)
    assert composite._one(x).device.type == "meta"
    assert {t.device.type for t in (y, *(results if learned else (results,)))} == {"meta"}
    allowed = ("aten._to_copy.default",) if dtype.itemsize == 2 else ()  # between dtypes, on the device
    assert [name for name in ops.names if any(word in name for word in WAITS) and name not in allowed] == []
