import copy
import itertools
import math
import pickle

import pytest
import safetensors.torch
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils import parametrize

from plunit.torch import PLU

pytestmark = pytest.mark.usefixtures("path")


def paper_formula(x, alpha=0.1, c=1.0):
    return torch.maximum(alpha * (x + c) - c, torch.minimum(alpha * (x - c) + c, x))


@pytest.mark.parametrize(
    ("learnable", "num_parameters"), [(False, 1), *itertools.product([True, "alpha", "c"], [1, 4])]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_starts_exactly_where_it_was_told(learnable, num_parameters, dtype):
    module = PLU(learnable=learnable, num_parameters=num_parameters, dtype=dtype)
    ulp = torch.finfo(dtype).eps
    # in half precision the raw number itself, logit(0.1) = -2.2, has few digits
    assert torch.as_tensor(module.alpha).tolist() == pytest.approx(
        torch.as_tensor(module.alpha).mul(0).add(0.1).tolist(), rel=4 * ulp
    )
    assert torch.as_tensor(module.c).eq(1.0).all()
    expected = {False: set(), True: {"raw_alpha", "raw_c"}, "alpha": {"raw_alpha"}, "c": {"raw_c"}}[learnable]
    assert {name for name, _ in module.named_parameters()} == expected
    assert all(p.shape == (num_parameters,) and p.dtype == dtype for p in module.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("raw", [-1e4, -30.0, 0.0, 30.0, 1e4])
def test_bounds_hold_whatever_the_raw_parameters(dtype, raw):
    module = PLU(learnable=True, dtype=dtype)
    for parameter in module.parameters():
        nn.init.constant_(parameter, raw)
    assert 0 < module.alpha.item() < 1
    assert 0 < module.c.item() < math.inf
    x = torch.randn(10, dtype=dtype, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_channels_on_any_axis(dim):
    x = torch.randn(4, 4, 4) * 3
    module = PLU(learnable=True, num_parameters=4, dim=dim)
    with torch.no_grad():
        module.raw_alpha.copy_(torch.linspace(-2, 2, 4))
        module.raw_c.copy_(torch.linspace(-1, 1, 4))
    channels = zip(x.unbind(dim), module.alpha.tolist(), module.c.tolist(), strict=True)
    expected = torch.stack([paper_formula(part, alpha, c) for part, alpha, c in channels], dim)
    torch.testing.assert_close(module(x), expected)
    torch.testing.assert_close(module.inverse(module(x)), x, rtol=1e-4, atol=1e-4)
    module.inplace = True
    assert module(x).data_ptr() == x.data_ptr()
    torch.testing.assert_close(x, expected)


def saved_bytes(activation, x):
    """Bytes of distinct storages kept for backward between two linear maps, beyond those of the maps themselves."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = activation(x)
    return sum(storages.values()), y.untyped_storage().data_ptr() in storages


def test_backward_keeps_one_tensor_and_the_native_kernel_the_output(path):
    x = torch.randn(1000, 100, requires_grad=True) * 1
    relu, keeps_output = saved_bytes(torch.relu, x)
    assert keeps_output
    assert saved_bytes(PLU(), x) == (relu, path == "native")
    assert saved_bytes(PLU(alpha=0.0), x) == (relu, False)  # a flat output cannot tell
    assert saved_bytes(paper_formula, x)[0] >= 3.2 * relu
    learned, keeps_output = saved_bytes(PLU(learnable=True, num_parameters=100), x)
    assert learned <= relu * 1.01  # and the parameters
    assert keeps_output == (path == "native")


def test_repr_shows_what_was_learned():
    shown = repr(PLU(0.2, 3, learnable="c", num_parameters=7, dim=-1, inplace=True))
    assert shown == "PLU(alpha=0.2, c=3.0, learnable='c', num_parameters=7, dim=-1, inplace=True)"
    one, several = PLU(learnable=True), PLU(learnable="alpha", num_parameters=3)
    with torch.no_grad():
        one.raw_alpha.fill_(math.log(0.25 / 0.75))
        one.raw_c.fill_(math.log(2.0))
        several.raw_alpha.copy_(torch.logit(torch.tensor([0.5, 0.0625, 0.12345678])))
    assert repr(one) == "PLU(alpha=0.25, c=2.0, learnable=True)"
    assert repr(several) == "PLU(alpha=0.0625..0.5, c=1.0, learnable='alpha', num_parameters=3, dim=1)"
    with torch.no_grad():
        one.raw_alpha.fill_(math.nan)
    assert "alpha=nan" in repr(one)


def test_repr_of_tensors_without_numbers():
    text, act = "PLU(alpha=0.2, c=3.0, learnable=True)", PLU(0.2, 3.0, learnable=True)
    assert repr(PLU(0.2, 3.0, learnable=True, device="meta")) == text
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert repr(act) == repr(PLU(0.2, 3.0, learnable=True)) == text
    act.raw_alpha = nn.Parameter(torch.empty(0))  # a shard of another process
    assert repr(act) == text


@pytest.mark.parametrize("learnable", [False, True, "alpha", "c"])
def test_copies_and_files(learnable, tmp_path):
    module = nn.Sequential(PLU(0.2, 2.0, learnable=learnable))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3)
    x = torch.randn(50) * 5
    fresh = nn.Sequential(PLU(0.2, 2.0, learnable=learnable))
    file = tmp_path / "module.safetensors"
    if learnable:
        safetensors.torch.save_model(module, file)
        safetensors.torch.load_model(fresh, file)
        torch.testing.assert_close(fresh(x), module(x))
    fresh.load_state_dict(module.state_dict())
    others = [fresh, copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    start = copy.deepcopy(module)
    start[0].reset_parameters()
    assert repr(start[0]) == repr(PLU(0.2, 2.0, learnable=learnable))
    torch.testing.assert_close([other(x) for other in others], [module(x)] * 3)
    assert [repr(other) for other in others] == [repr(module)] * 3


@pytest.mark.parametrize("shape", [(3, 5), (4,), (), (4, 3)])
@pytest.mark.parametrize("inplace", [False, True])
def test_channels_that_do_not_match_change_nothing(shape, inplace):
    module, x = PLU(learnable=True, num_parameters=4, inplace=inplace), torch.full(shape, 5.0)
    with pytest.raises(ValueError, match=r"expected 4 channels on axis 1"):
        module(x)
    assert x.eq(5).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_change_of_dtype_keeps_learned_values_to_rounding(dtype):
    module = PLU(1e-3, 200.0, learnable=True)
    module.to(dtype)
    eps = torch.finfo(dtype).eps
    assert module.c.item() == pytest.approx(200, rel=8 * eps + 1e-5)
    assert module.alpha.item() == pytest.approx(1e-3, rel=8 * eps + 1e-5)
    x = torch.tensor([1000.0, 0.5], dtype=dtype, requires_grad=True)
    module(x).sum().backward()
    assert module.raw_c.grad.item() > 0


class Doubled(torch.nn.Module):
    def forward(self, raw):
        return raw * 2

    def right_inverse(self, value):
        return value / 2


def test_a_parametrised_value_is_used_and_trained():
    module = PLU(learnable=True)
    parametrize.register_parametrization(module, "raw_c", Doubled())
    with torch.no_grad():
        module.parametrizations.raw_c.original.fill_(0.5)
    assert module.c.item() == pytest.approx(math.e)
    module(torch.tensor([5.0])).sum().backward()
    assert module.parametrizations.raw_c.original.grad.item() > 0
    module.reset_parameters()
    assert module.c.item() == pytest.approx(1)


def test_a_replica_uses_its_own_values():
    module = PLU(learnable=True)
    replica = module._replicate_for_data_parallel()
    replica.raw_c = module.raw_c * 1 + 1  # as DataParallel sets it: a tensor, not a parameter
    assert replica.c.item() == pytest.approx(math.e)


def test_one_value_can_be_sharded():
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        model = nn.Sequential(nn.Linear(4, 4), PLU(learnable=True))
        mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
        fully_shard(model, mesh=mesh)
        model(torch.randn(8, 4) * 5).square().sum().backward()
        assert model[1].raw_c.grad.full_tensor().item() != 0
    finally:
        distributed.destroy_process_group()
