"""PLU under what PyTorch does to functions: torch.func, forward mode, compilers, exporters, fake tensors, autocast."""

import warnings

import numpy as np
import pytest
import torch
from compilers import needs_compiler
from torch import nn
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import plunit
import plunit.pieces
from plunit.torch import PLU, plu

MODULES = {
    "fixed": lambda: PLU(),
    "flat": lambda: PLU(alpha=0.0),
    "inplace": lambda: PLU(inplace=True),
    "learnable": lambda: PLU(learnable=True),
    "per channel": lambda: PLU(learnable=True, num_parameters=4),
    "alpha only": lambda: PLU(learnable="alpha", num_parameters=4, inplace=True),
}
modules = pytest.mark.parametrize("module", [make() for make in MODULES.values()], ids=list(MODULES))


def points(*shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0)) * 2
    x.view(-1)[:4] = torch.tensor([1.0, -1.0, -0.0, 1.0000001])
    return x


@pytest.mark.usefixtures("path")
class TestFunc:
    def slopes(self, x, alpha):
        return torch.where(x.abs() > 1, alpha, 1.0)

    @pytest.mark.parametrize("alpha", [0.1, 0.0, torch.tensor(0.3), torch.tensor([[0.1], [0.2], [0.3]])])
    def test_vmap(self, alpha):
        x, axis = points(3, 5), 0 if isinstance(alpha, torch.Tensor) and alpha.ndim else None
        torch.testing.assert_close(vmap(plu, (0, axis))(x, alpha), plu(x, alpha))

    @pytest.mark.parametrize("alpha", [0.1, 0.0])
    @pytest.mark.parametrize("inplace", [False, True])
    def test_transforms_of_functions_that_close_over_the_input(self, alpha, inplace):
        def scaled(factor):
            return plu(points(4), alpha, inplace=inplace) * factor

        expected = plu(points(4), alpha)
        torch.testing.assert_close(vmap(scaled, randomness="same")(torch.ones(2)), expected.expand(2, 4))
        torch.testing.assert_close(jvp(scaled, (torch.ones(()),), (torch.ones(()),))[1], expected)
        torch.testing.assert_close(grad(lambda s: scaled(s).sum())(torch.ones(())), expected.sum())

    def test_vmap_in_place(self):
        x = points(3, 5)
        expected = plu(x)
        torch.testing.assert_close(vmap(lambda row: plu(row, inplace=True))(x), expected)
        torch.testing.assert_close(x, expected)

    @pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
    def test_jacobians_at_the_kinks(self, jacobian):
        x = points(7)
        torch.testing.assert_close(jacobian(plu)(x), torch.diag(self.slopes(x, 0.1)))

    @pytest.mark.parametrize("argument", [0, 1, 2])
    def test_forward_and_reverse_mode_agree_for_every_argument(self, argument):
        arguments = points(6, 4).double(), torch.rand(4).double() * 0.8 + 0.1, torch.rand(4).double() + 0.5
        forward = jacfwd(plu, argnums=argument)(*arguments)
        torch.testing.assert_close(forward, jacrev(plu, argnums=argument)(*arguments))
        assert forward.abs().sum() > 0

    def test_jvp_and_dual_numbers(self):
        x, tangent = points(6), torch.arange(1.0, 7.0)
        _, out = jvp(plu, (x,), (tangent,))
        torch.testing.assert_close(out, tangent * self.slopes(x, 0.1))
        with forward_ad.dual_level():
            dual = forward_ad.unpack_dual(plu(forward_ad.make_dual(x, tangent)))
        torch.testing.assert_close(dual.tangent, out)
        torch.testing.assert_close(dual.primal, plu(x))

    def test_dual_numbers_in_a_parameter(self):
        x, alpha = points(6), torch.tensor(0.2)
        with forward_ad.dual_level():
            out = forward_ad.unpack_dual(plu(x, forward_ad.make_dual(alpha, torch.tensor(1.0)))).tangent
        torch.testing.assert_close(out, (x - x.clamp(-1, 1)))

    def test_second_order(self):
        x = points(20).double()

        def loss(alpha):
            return (plu(x, alpha, 0.7) ** 2).sum()

        alpha = torch.tensor(0.2, dtype=torch.float64)
        step = 1e-5
        difference = (grad(loss)(alpha + step) - grad(loss)(alpha - step)) / (2 * step)
        assert hessian(loss)(alpha).item() == pytest.approx(difference.item(), rel=1e-6)


@pytest.mark.parametrize("name", ["fixed", "per channel", "alpha only"])
@needs_compiler
def test_compiled_is_eager_without_a_graph_break(name):
    module = MODULES[name]()
    torch.compiler.reset()
    x = points(3, 4, 5).requires_grad_()
    compiled = torch.compile(lambda x: module(x * 1), fullgraph=True, dynamic=True)
    expected, actual = module(x * 1), compiled(x)
    torch.testing.assert_close(actual, expected)
    wanted = [x, *module.parameters()]
    weight = torch.randn_like(x)
    gradients = [torch.autograd.grad(output, wanted, weight) for output in (actual, expected)]
    torch.testing.assert_close(*gradients)


@needs_compiler
def test_compiled_plu_is_fused_with_its_neighbours():
    from torch._inductor.utils import run_and_get_code

    torch.compiler.reset()

    @torch.compile(fullgraph=True)
    def function(x):
        return plu(x * 3 + 1).exp()

    with torch.no_grad():
        _, code = run_and_get_code(function, points(64))
    source = "\n".join(code)
    assert source.count('extern "C"') == 1  # one loop for all of it
    assert "plunit" not in source


@modules
def test_export(module):
    x = points(3, 4, 5)
    program = torch.export.export(module, (x,))
    assert "plunit" not in program.graph_module.code
    torch.testing.assert_close(program.module()(x.clone()), module(x.clone()))


exporters = pytest.mark.parametrize("dynamo", [True, False], ids=["torch.export", "TorchScript"])


def save_onnx(model, x, file, dynamo):
    """Export, and fail on a warning that the trace depends on numbers of the example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporters' own deprecations
        warnings.simplefilter("error", torch.jit.TracerWarning)
        torch.onnx.export(model.eval(), (x,), file, dynamo=dynamo, verbose=False)


def in_onnxruntime(file, x):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]


@exporters
@pytest.mark.parametrize("name", ["flat", "per channel"])
def test_onnx_in_onnxruntime(name, dynamo, tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), MODULES[name](), nn.Flatten(), nn.Linear(64, 2))
    x = points(2, 3, 6, 6)
    save_onnx(model, x, tmp_path / "model.onnx", dynamo)
    actual = in_onnxruntime(tmp_path / "model.onnx", x)
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


SPECIAL = torch.tensor([torch.nan, torch.inf, -torch.inf, 3e38, -3e38, 1e-40, 0.0, -0.0])


@exporters
@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.0, 1.0), (3.0, 0.0)])
def test_onnx_activation_alone_is_equal_to_the_bit(alpha, c, dynamo, tmp_path):
    x = torch.cat([points(1000), SPECIAL])
    save_onnx(PLU(alpha, c), x, tmp_path / "plu.onnx", dynamo)
    actual, expected = in_onnxruntime(tmp_path / "plu.onnx", x), plunit.plu(x.numpy(), alpha, c)
    np.testing.assert_array_equal(actual, expected)
    if c > 0:  # else each zero is a kink, where the sign is lost
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


NODES = {
    "fixed": ["Clip", "Sub", "Mul", "Sub"],
    "flat": ["Clip"],
    "inplace": ["Clip", "Sub", "Mul", "Sub"],
    "learnable": ["Clip", "Sub", "Mul", "Sub"],
    "per channel": ["Max", "Min", "Sub", "Mul", "Sub"],
    "alpha only": ["Clip", "Sub", "Mul", "Sub"],
}


@exporters
@pytest.mark.parametrize("name", NODES)
def test_onnx_has_no_more_nodes_than_the_function_needs(name, dynamo, tmp_path):
    onnx = pytest.importorskip("onnx")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), MODULES[name](), nn.Linear(4, 2))
    with torch.no_grad():
        for raw in model[1].parameters():
            raw += torch.randn_like(raw)
    save_onnx(model, points(1, 6), tmp_path / "model.onnx", dynamo)
    nodes = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    copy = ["Shape", "Expand"] if model[1].inplace and not dynamo else []  # how TorchScript writes copy_
    assert [kind for kind in nodes if kind not in ("Gemm", "Constant", "Identity")] == NODES[name] + copy
    read = plunit.pieces.load(tmp_path / "model.onnx")
    for x in (2 * points(5, 6)).split(1):
        np.testing.assert_allclose(read(x.numpy()), in_onnxruntime(tmp_path / "model.onnx", x), rtol=1e-5, atol=1e-6)


def test_onnx_of_any_batch_size_by_torchscript(tmp_path):
    module, file = MODULES["per channel"](), tmp_path / "plu.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(module, (points(2, 4),), file, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    x = points(7, 4)
    np.testing.assert_allclose(in_onnxruntime(file, x), module(x).detach().numpy(), rtol=1e-6)


@modules
def test_jit_trace(module):
    x = points(3, 4, 5)
    traced = torch.jit.trace(module, (x.clone(),), check_trace=False)
    other = points(3, 4, 5).flip(0)
    torch.testing.assert_close(traced(other.clone()), module(other.clone()))


HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.filterwarnings("ignore:`torch.jit")  # its deprecation
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@modules
def test_jit_script(module, dtype, tmp_path):
    torch.jit.script(module).save(tmp_path / "plu.pt")
    scripted = torch.jit.load(tmp_path / "plu.pt")
    x = points(3, 4, 5).to(dtype).requires_grad_()
    expected, actual = module(x * 1), scripted(x * 1)
    torch.testing.assert_close(actual, expected, rtol=torch.finfo(dtype).eps, atol=0)
    gradients = [
        torch.autograd.grad(y, [x, *m.parameters()], torch.ones_like(y))
        for y, m in ((actual, scripted), (expected, module))
    ]
    torch.testing.assert_close(*gradients, rtol=1e-2 if dtype in HALVES else 1e-5, atol=1e-4)
    if module.num_parameters > 1:
        with pytest.raises(RuntimeError, match="invalid for input of size 4"):
            scripted(points(3, 5))


@pytest.mark.usefixtures("path")
class TestTensorKinds:
    @modules
    def test_meta(self, module):
        meta = module.__class__(learnable=module.learnable, num_parameters=module.num_parameters, device="meta")
        y = meta(torch.empty(2, 4, 3, 3, device="meta").to(memory_format=torch.channels_last))
        assert y.device.type == "meta"
        assert y.is_contiguous(memory_format=torch.channels_last)

    def test_fake(self):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        with FakeTensorMode():
            y = plu(torch.empty(2, 3, dtype=torch.bfloat16, requires_grad=True))
            y.sum().backward()
        assert isinstance(y, FakeTensor)
        assert y.dtype == torch.bfloat16

    @modules
    def test_autocast(self, module):
        model = nn.Sequential(nn.Linear(6, 4), module, nn.Linear(4, 2))
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model[:2](points(8, 6))
            model(points(8, 6)).float().sum().backward()
        assert hidden.dtype == torch.bfloat16
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())

    def test_inference_mode(self):
        with torch.inference_mode():
            x = points(5)
            assert plu(x).is_inference()
            torch.testing.assert_close(plu(x.clone(), inplace=True), plu(x))
