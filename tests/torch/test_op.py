import numpy as np
import pytest
import torch
from oracles import ALPHAS_AND_CS, C_BEYOND_FLOAT32, LARGE, exact, points
from torch.autograd import gradcheck, gradgradcheck

import plunit
from plunit.torch import inverse, log_slope, plu, slope

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
pytestmark = pytest.mark.usefixtures("path")


def ulps(dtype, count=2):
    info = torch.finfo(dtype)
    return {"rtol": count * info.eps, "atol": info.tiny * info.eps}


def kink_points(c, dtype):
    """The numbers of the oracle and the closest neighbours of the kinks, as a tensor of this dtype."""
    x = torch.tensor(points(c)).clamp(-1e4, 1e4).to(dtype)
    step = torch.tensor(c, dtype=dtype) * torch.finfo(dtype).eps
    near = torch.tensor(c, dtype=dtype) + step * torch.arange(-8, 40)
    return torch.cat([x, near, -near]).to(dtype)


@pytest.mark.parametrize(("alpha", "c"), ALPHAS_AND_CS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_rational_value_and_the_gradient_one_up_to_the_kink_and_alpha_beyond(alpha, c, dtype):
    x = kink_points(c, dtype).requires_grad_()
    y = plu(x, alpha, c)
    y.sum().backward()
    narrow = torch.float64 if dtype == torch.float64 else torch.float32
    alpha, c = (torch.tensor(value, dtype=narrow).double() for value in (alpha, c))
    expected = torch.tensor([exact(value, alpha, c) for value in x.tolist()], dtype=torch.float64).to(dtype)
    torch.testing.assert_close(y.detach(), expected, **ulps(dtype, 3))
    slopes = torch.where(x.detach().double().abs() > c, alpha, 1.0).to(dtype)
    torch.testing.assert_close(x.grad, slopes, **ulps(dtype, 1))


@pytest.mark.parametrize("alpha", [0.1, 0.0, 2.0])
def test_nan_and_inf_do_not_spoil_other_gradients(alpha):
    x = torch.tensor([torch.nan, torch.inf, 2.0, 0.5], requires_grad=True)
    c = torch.tensor(1.0, requires_grad=True)
    plu(x, alpha, c)[2:].sum().backward()
    assert x.grad[2:].tolist() == pytest.approx([alpha, 1])
    assert c.grad.item() == pytest.approx(1 - alpha)


LAYOUTS = {
    "transposed": lambda x: x.transpose(1, 3),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "sliced": lambda x: x[:, ::2, 1:],
    "expanded": lambda x: x[:, :1].expand(-1, 3, -1, -1),
    "contiguous": lambda x: x,
}


SHAPED = [2 * torch.randn(shape) for shape in ((), (0,), (0, 3), (1,), (7,), (100_003,))]


@pytest.mark.parametrize("x", [layout(2 * torch.randn(2, 8, 4, 6)) for layout in LAYOUTS.values()] + SHAPED)
def test_any_shape_and_the_layout_of_relu(x):
    y = plu(x)
    assert y.stride() == torch.relu(x).stride()
    np.testing.assert_allclose(y.numpy(), plunit.plu(x.numpy()), rtol=3e-7)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("axis", [None, 0, 1, 3])
def test_gradients_in_any_layout_are_those_of_the_formula(layout, axis):
    x = layout(torch.randn(2, 8, 4, 6, dtype=torch.float64) * 2).detach()
    shape = [1] * 4 if axis is None else [x.shape[d] if d == axis else 1 for d in range(4)]
    alpha, c = torch.rand(shape, dtype=torch.float64) * 0.9 + 0.05, torch.rand(shape, dtype=torch.float64) + 0.5
    grad = torch.randn(x.shape, dtype=torch.float64)
    inputs = [value.clone().requires_grad_() for value in (x, alpha, c)]
    actual = torch.autograd.grad(plu(inputs[0] * 1, *inputs[1:]), inputs, grad)
    m = torch.maximum(torch.minimum(inputs[0], inputs[2]), -inputs[2])
    expected = torch.autograd.grad(m + inputs[1] * (inputs[0] - m), inputs, grad)
    torch.testing.assert_close(actual, expected)
    twice = torch.autograd.grad(plu(inputs[0] * 1, *inputs[1:]), inputs, grad, create_graph=True)
    torch.testing.assert_close(twice, expected)


def test_learned_sums_are_accurate_over_many_numbers():
    x = torch.randn(3, 4, 50_000) * 2
    alpha, c = torch.full((4, 1), 0.1, requires_grad=True), torch.ones(4, 1, requires_grad=True)
    grad = torch.randn_like(x)
    actual = torch.autograd.grad(plu(x, alpha, c), (alpha, c), grad)
    outside = x.abs().double() > 1
    excess = torch.where(outside, (x - x.sign()).double() * grad, 0).sum((0, 2))[:, None]
    sign = torch.where(outside, x.sign().double() * grad * (1 - alpha), 0).sum((0, 2))[:, None]
    torch.testing.assert_close(actual[0].double(), excess, rtol=1e-4, atol=2e-3)
    torch.testing.assert_close(actual[1].double(), sign, rtol=1e-5, atol=1e-3)


PARAMETER_SHAPES = [((), ()), ((4, 1), (4, 1)), ((4, 1), ()), ((5,), (4, 1)), ((3, 4, 5), (1,))]


@pytest.mark.parametrize("shapes", PARAMETER_SHAPES)
@pytest.mark.parametrize("inplace", [False, True])
def test_gradcheck_for_x_alpha_and_c(shapes, inplace):
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5, dtype=torch.float64) * 2
    alpha, c = (torch.rand(shape, dtype=torch.float64) * 0.8 + 0.1 for shape in shapes)
    x = torch.where((x.abs() - c).abs() < 1e-2, 3.0, x)  # finite differences cannot straddle a kink
    inputs = [value.requires_grad_() for value in (x, alpha, c)]

    def function(x, alpha, c):
        return plu(x * 1.0, alpha, c, inplace=inplace)

    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)
    assert gradcheck(lambda x: plu(x * 1.0, 0.3, 0.7, inplace=inplace), inputs[:1])
    assert gradgradcheck(lambda x: plu(x * 1.0, 0.3, 0.7, inplace=inplace), inputs[:1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_half_precision_input_with_float32_parameters(dtype, alpha):
    x = (torch.randn(4, 2000) * 2).to(dtype).requires_grad_()
    alpha, c = torch.full((4, 1), alpha, requires_grad=True), torch.ones(4, 1, requires_grad=True)
    wide = x.detach().float().requires_grad_()
    actual = torch.autograd.grad(plu(x, alpha, c).sum(), (x, alpha, c))
    expected = torch.autograd.grad(plu(wide, alpha, c).sum(), (wide, alpha, c))
    assert [g.dtype for g in actual] == [dtype, torch.float32, torch.float32]
    torch.testing.assert_close(actual[0].float(), expected[0], rtol=4e-3, atol=0)
    torch.testing.assert_close(actual[1:], expected[1:], rtol=1e-3, atol=1e-2)


def test_inplace_overwrites_its_input_and_trains_as_the_other():
    x = torch.randn(4, 50, requires_grad=True)
    before = x * 2
    storage = before.data_ptr()
    y = plu(before, inplace=True)
    assert y.data_ptr() == storage
    assert before is y
    (actual,) = torch.autograd.grad((y * y).sum(), x)
    (expected,) = torch.autograd.grad((plu(x * 2) ** 2).sum(), x)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("alpha", [0.1, 0.0])
def test_inplace_on_a_view(alpha):
    x = torch.randn(6, 50, requires_grad=True)
    base = x * 2
    plu(base[::2], alpha, inplace=True)
    (actual,) = torch.autograd.grad((base**2).sum(), x)
    other = x * 2
    (expected,) = torch.autograd.grad((plu(other[::2], alpha) ** 2).sum() + (other[1::2] ** 2).sum(), x)
    torch.testing.assert_close(actual, expected)


def test_inplace_on_what_another_op_needs_is_noticed():
    x = torch.randn(5, requires_grad=True)
    hidden = x.exp()
    y = plu(hidden, inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def inference():
    with torch.inference_mode():
        return torch.full((3,), 5.0)


FORBIDDEN = {
    "a leaf": lambda: (torch.full((3,), 5.0, requires_grad=True),) * 2,
    "an inference tensor": lambda: (inference(),) * 2,
    "a part of a split": lambda: ((z := torch.full((6,), 5.0).requires_grad_() * 1), z.split(3)[0]),
    "an unbound row": lambda: ((z := torch.full((6,), 5.0).requires_grad_() * 1), z.view(2, 3).unbind()[0]),
}


@pytest.mark.parametrize("name", FORBIDDEN)
@pytest.mark.parametrize("alpha", [0.1, 0.0])
def test_inplace_on_what_pytorch_forbids_changes_nothing(name, alpha):
    whole, part = FORBIDDEN[name]()
    with pytest.raises(RuntimeError, match=r"view|leaf Variable|inference tensor"):
        plu(part, alpha, inplace=True)
    assert whole.eq(5).all()


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_inverse_and_its_gradient(alpha):
    x = torch.randn(1000, dtype=torch.float64).mul(3).requires_grad_()
    y = inverse(plu(x, alpha, 0.8), alpha, 0.8)
    torch.testing.assert_close(y, x)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.ones_like(x))


def test_slope_and_log_slope_have_the_dtype_of_the_input_and_a_gradient_for_alpha():
    x, alpha = torch.tensor([-2.0, 1.0, 3.0], dtype=torch.bfloat16), torch.tensor(0.5, requires_grad=True)
    assert slope(x, alpha).tolist() == [0.5, 1, 0.5]
    assert slope(x, alpha).dtype == torch.bfloat16
    log_slope(x.double(), alpha).sum().backward()
    assert alpha.grad.item() == pytest.approx(2 * 2)


def test_tensor_subclasses_are_kept():
    class Labelled(torch.Tensor):
        pass

    y = plu(torch.randn(3).as_subclass(Labelled))
    assert isinstance(y, Labelled)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("parameters", [{"alpha": -0.1}, {"c": -1.0}, {"alpha": torch.nan}, {"c": torch.inf}])
def test_bad_parameters_change_nothing(parameters, inplace):
    ((name, value),) = parameters.items()
    x = torch.full((3,), 5.0)
    with pytest.raises(ValueError, match=f"{name} .* got {value}"):
        plu(x, **parameters, inplace=inplace)
    assert x.tolist() == [5, 5, 5]


@pytest.mark.parametrize(("alpha", "dtype"), [(1e-39, torch.float64), (1e38, torch.float64), (1.2e-38, torch.float32)])
def test_inverse_of_slopes_that_the_precision_has(alpha, dtype):
    expected = torch.tensor([0.5, 1 + 2 / alpha], dtype=dtype)
    torch.testing.assert_close(inverse(torch.tensor([0.5, 3.0], dtype=dtype), alpha), expected)


@pytest.mark.parametrize(("alpha", "c"), C_BEYOND_FLOAT32)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("inplace", [False, True])
def test_a_c_beyond_the_largest_number_leaves_every_number_inside(alpha, c, dtype, inplace):
    x = torch.tensor(LARGE).clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max).to(dtype).requires_grad_()
    y = plu(x * 1, alpha, c, inplace=inplace)
    assert torch.equal(y, x)
    assert torch.autograd.grad(y.sum(), x, create_graph=True)[0].tolist() == [1] * len(x)
    assert torch.autograd.grad(plu(x * 1, alpha, c, inplace=inplace).sum(), x)[0].tolist() == [1] * len(x)
    assert slope(x, alpha, c).tolist() == [1] * len(x)
    learned = torch.tensor(0.25, requires_grad=True)
    assert torch.autograd.grad(plu(x, learned, c).sum(), learned)[0] == 0
    end = torch.tensor(torch.finfo(torch.float32).max if alpha == 0 else torch.inf).to(dtype)
    infinities = torch.tensor([torch.inf, -torch.inf], dtype=dtype)
    assert plu(infinities, alpha, c, inplace=inplace).tolist() == [end, -end]


@pytest.mark.parametrize("shape", [(), (3,), (2, 1)], ids=["one value", "channels last", "channels first"])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("inplace", [False, True])
def test_a_nan_has_the_slope_one_and_makes_the_gradient_of_alpha_nan(shape, create_graph, inplace):
    x = torch.tensor([[torch.nan, 2.0, 0.5], [3.0, 0.5, -0.5]], requires_grad=True)
    alpha, c = torch.full(shape, 0.25, requires_grad=True), torch.ones(shape, requires_grad=True)
    y = plu(x * 1, alpha, c, inplace=inplace)
    dx, dalpha, dc = torch.autograd.grad(y.sum(), (x, alpha, c), create_graph=create_graph)
    assert dx.tolist() == [[1, 0.25, 1], [0.25, 1, 1]]
    spoiled = {(): True, (3,): [True, False, False], (2, 1): [[True], [False]]}
    assert dalpha.isnan().tolist() == spoiled[shape]
    assert dc.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("c", [0.3, 0.7, torch.tensor(0.3, requires_grad=True)], ids=["0.3", "0.7", "learned 0.3"])
def test_half_precision_compares_with_c_in_float32(dtype, c):
    x = torch.tensor([0.3, 0.7, -0.3], dtype=dtype, requires_grad=True)
    wide = torch.tensor(c) if isinstance(c, float) else c.detach()
    expected = torch.where(x.detach().float().abs() > wide, 0.5, 1.0).tolist()
    y = plu(x, 0.5, c)
    assert torch.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == expected
    assert torch.autograd.grad(y.sum(), x, create_graph=True)[0].tolist() == expected
    assert slope(x, 0.5, c).tolist() == expected


@pytest.mark.parametrize("create_graph", [False, True])
def test_parameters_in_double_are_those_of_the_input(create_graph):
    x, c = torch.full((2,), 0.1, requires_grad=True), torch.full((2,), 0.1, dtype=torch.float64)
    assert torch.autograd.grad(plu(x, 0.5, c).sum(), x, create_graph=create_graph)[0].tolist() == [1, 1]
    assert slope(x, 0.5, c).tolist() == [1, 1]


@pytest.mark.parametrize("alpha", [np.float32(0.5), np.array([0.5, 0.5]), [0.5, 0.5], torch.tensor(0.5)])
def test_parameters_of_any_kind(alpha):
    assert plu(torch.tensor([3.0, -0.5]), alpha, 1).tolist() == [2, -0.5]
    assert log_slope(torch.tensor([2.0], dtype=torch.float16), 1e-8).item() == pytest.approx(-18.42, abs=0.01)
    assert plu(torch.ones(3, 0), torch.ones(0)).shape == (3, 0)


PARAMETERS = {
    "numbers": (0.1, 1.0),
    "flat": (0.0, 1.0),
    "above one": (2.0, 1.0),
    "learned": (torch.tensor(0.3, requires_grad=True), torch.tensor(1.0, requires_grad=True)),
    "constant tensors": (torch.tensor([0.3, 0.2, 0.1]), torch.tensor([1.0, 0.5, 0.2])),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("function", [plu, inverse])
def test_second_derivatives_are_zeros_as_those_of_relu(name, inplace, function):
    if function is inverse and (inplace or name == "flat"):
        pytest.skip("there is no such inverse")
    options = {"inplace": inplace} if function is plu else {}
    x = torch.tensor([-2.0, 0.5, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(function(x * 1, *PARAMETERS[name], **options).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_inverse_divides_in_the_precision_of_y(dtype):
    alpha, x = torch.tensor(0.1, dtype=dtype), torch.linspace(-50, 50, 101, dtype=torch.float64)
    torch.testing.assert_close(inverse(plu(x, alpha), alpha), x, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # compiled autograd itself reads it
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("inplace", [False, True])
def test_compiled_autograd(learned, inplace):
    alpha, c = torch.tensor(0.1, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    x = torch.tensor([-2.0, 0.5, 2.0], requires_grad=True)
    y = plu(x * 1, alpha if learned else 0.1, c if learned else 1.0, inplace=inplace)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        y.sum().backward()
    assert x.grad.tolist() == pytest.approx([0.1, 1, 0.1])
    torch._dynamo.reset()
