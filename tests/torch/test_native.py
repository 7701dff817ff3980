"""The native op: that it is built, is registered soundly, and says the same as PyTorch's own ops to the bit."""

import sys
import timeit

import pytest
import torch
from compilers import COMPILER

from plunit.torch import has_native, op, plu

native_only = pytest.mark.skipif(not has_native(), reason="the native op was not built")


def test_native_is_built_where_a_compiler_is():
    if sys.platform == "linux" and COMPILER:
        assert has_native()


def both(monkeypatch, function):
    ours = function()
    monkeypatch.setattr(op, "_native", None)
    return ours, function()


@native_only
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_native_learned_values_are_equal_to_the_bit(monkeypatch, memory_format):
    x = (torch.randn(4, 5, 33, 7) * 2).contiguous(memory_format=memory_format)
    alpha, c = torch.linspace(0.01, 2, 5).view(5, 1, 1), torch.linspace(0, 2, 5).view(5, 1, 1)
    y, y_composite = both(monkeypatch, lambda: plu(x, alpha, c))
    assert torch.equal(y, y_composite)


@native_only
@pytest.mark.parametrize("learned", [False, True])
def test_opcheck(learned):
    ops, overload = torch.ops.plunit, "learned" if learned else "default"
    x, alpha, c = torch.randn(3, 4, 5, requires_grad=True), 0.1, 1.0
    if learned:
        alpha, c = torch.full((4, 1), 0.2, requires_grad=True), torch.rand(4, 1, requires_grad=True)
    torch.library.opcheck(getattr(ops.plu, overload), (x, alpha, c))
    x, alpha, c = (value.detach() if isinstance(value, torch.Tensor) else value for value in (x, alpha, c))
    torch.library.opcheck(getattr(ops.plu_backward, overload), (torch.randn(3, 4, 5), ops.plu(x, alpha, c), alpha, c))
    # the functional op covers autograd: opcheck differentiates only ops that do not mutate
    torch.library.opcheck(getattr(ops.plu_, overload), (x, alpha, c))
    with pytest.raises(ValueError, match="must have one shape"):
        ops.plu_backward(torch.ones(2), torch.ones(5000), *(map(torch.tensor, (0.1, 1.0)) if learned else (0.1, 1.0)))
    with pytest.raises(ValueError, match="one value, or one per channel on one axis"):
        ops.plu(x, torch.full((5,), 0.1), torch.ones(4, 1))


@native_only
@pytest.mark.parametrize(
    ("alpha", "c"),
    [
        (0.0, 1.0),
        (-0.1, 1.0),
        (torch.nan, 1.0),
        (torch.zeros(()), 1.0),
        (torch.full((), 1e-5, requires_grad=True), 1.0),
        (torch.full((5,), 0.1), torch.ones(4, 1)),
        (torch.full((3, 1, 5), 0.1), 1.0),
        ("0.1", 1.0),
    ],
)
def test_kernel_declines_what_it_cannot_do(alpha, c):
    assert op._native.plu(torch.randn(3, 4, 5), alpha, c, False) is None


@native_only
def test_integers_are_numbers_to_the_kernel():
    assert op._native.plu(torch.tensor([3.0]), 1, 1, False).tolist() == [3]
    assert op._native.plu(torch.tensor([3.0]), 10**400, 1, False) is None


@native_only
def test_threads_agree():
    x, grad = torch.randn(16, 300_000, requires_grad=True), torch.randn(16, 300_000)
    alpha, c = torch.full((16, 1), 0.1, requires_grad=True), torch.ones(16, 1, requires_grad=True)
    results, threads = [], torch.get_num_threads()
    for count in (1, 2):
        torch.set_num_threads(count)
        y = plu(x, alpha, c)
        results.append((y, *torch.autograd.grad(y, (x, alpha, c), grad)))
    torch.set_num_threads(threads)
    torch.testing.assert_close(*results)


HALVES = [torch.float16, torch.bfloat16]
SHAPES = {  # around the vectors and tiles in which half precision is widened; the axis of the channels
    **{f"{n} numbers": ((n,), None) for n in (1, 7, 8, 15, 17, 511, 512, 513, 1500)},
    "short runs": ((5, 3, 49), 1),
    "long runs": ((2, 3, 700), 1),
    "rows": ((600, 7), 1),
    "rows of a tile and more": ((3, 700), 1),
}


def rounded_outward(x, alpha, c):
    """Return PLU of float32 rounded once to the dtype of x, and outer values at least to the number above c."""
    rounded = torch.ops.plunit.plu(x.float(), alpha, c).to(x.dtype)
    near = c.to(x.dtype)
    rim = torch.where(near.float() > c, near, torch.nextafter(near, torch.full_like(near, torch.inf))).expand_as(x)
    return torch.where((x.float().abs() > c) & (rounded.float().abs() <= c), rim.copysign(x), rounded)


@native_only
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", SHAPES)
def test_half_precision_is_float32_rounded_once(shape, dtype):
    sizes, axis = SHAPES[shape]
    x, grad = ((torch.randn(sizes) * 2).to(dtype) for _ in range(2))
    per_channel = [size if d == axis else 1 for d, size in enumerate(sizes)]
    alpha, c = torch.rand(per_channel) * 2 + 0.01, torch.rand(per_channel)
    y = torch.ops.plunit.plu(x, alpha, c)
    dx, dalpha, dc = torch.ops.plunit.plu_backward.learned(grad, y, alpha, c)
    outside = x.float().abs() > c
    assert torch.equal(y.float().abs() > c, outside)
    assert torch.equal(y, rounded_outward(x, alpha, c))
    assert torch.equal(dx, torch.where(outside, grad.float() * alpha, grad.float()).to(dtype))
    sums = torch.ops.plunit.plu_backward.learned(grad.double(), y.double(), alpha, c)
    torch.testing.assert_close((dalpha, dc), sums[1:], rtol=1e-5, atol=1e-3)
    assert torch.equal(torch.ops.plunit.plu(x, 0.1, 0.7), torch.ops.plunit.plu(x.flip(-1), 0.1, 0.7).flip(-1))


@native_only
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_every_value_and_gradient_in_half_precision(dtype, alpha):
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    y = torch.ops.plunit.plu(every, alpha, 1.0)
    exact = {"rtol": 0, "atol": 0, "equal_nan": True}
    torch.testing.assert_close(y, rounded_outward(every, torch.tensor(alpha), torch.tensor(1.0)), **exact)
    grad = every[torch.randperm(len(every), generator=torch.Generator().manual_seed(0))]
    slopes = torch.where(every.float().abs() > 1, torch.tensor(alpha), 1.0)
    expected = (grad.float() * slopes).to(dtype)
    torch.testing.assert_close(torch.ops.plunit.plu_backward(grad, y, alpha, 1.0), expected, **exact)


@native_only
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_never_slower_than_without_the_kernel(monkeypatch, dtype):
    x, grad = (torch.randn(1_000_000).to(dtype) for _ in range(2))
    x.requires_grad_()
    kernel, times = op._native, {True: [], False: []}
    for _ in range(15):
        for is_native, taken in times.items():
            monkeypatch.setattr(op, "_native", kernel if is_native else None)
            taken.append(timeit.timeit(lambda: torch.autograd.grad(plu(x), x, grad), number=1))
    assert min(times[True]) <= min(times[False])
