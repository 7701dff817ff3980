import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import plunit
from plunit.torch import PLU, convert, init_, param_groups


class Block(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.first, self.activation, self.second = nn.Linear(4, 4), activation, nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.activation(self.first(x)))


def test_convert_replaces_at_every_depth_and_returns_what_it_replaced():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Block(nn.Tanh()), nn.ReLU6())
    relu, tanh = model[1], model[2].activation
    replaced = convert(model, {nn.ReLU: PLU, nn.Tanh: lambda: PLU(learnable=True)})
    assert replaced == {"1": relu, "2.activation": tanh}
    assert isinstance(model[1], PLU)
    assert model[2].activation.learnable is True
    assert isinstance(model[3], nn.ReLU6)
    model(torch.randn(2, 4)).sum().backward()
    assert model[2].activation.raw_alpha.grad is not None


def test_shared_modules_stay_shared_but_learnable_ones_are_one_per_place():
    def make():
        shared = nn.ReLU()
        return nn.Sequential(shared, nn.Linear(4, 4), shared)

    fixed, learnable = make(), make()
    assert list(convert(fixed, {nn.ReLU: PLU})) == ["0", "2"]
    assert fixed[0] is fixed[2]
    convert(learnable, {nn.ReLU: lambda: PLU(learnable=True)})
    assert learnable[0] is not learnable[2]
    assert len(list(learnable.parameters())) == 2 + 4


def test_shared_blocks_are_converted_once():
    block = Block(nn.ReLU())
    model = nn.Sequential(block, block)
    convert(model, {nn.ReLU: lambda: PLU(learnable=True)})
    assert model[0] is model[1] is block
    assert isinstance(block.activation, PLU)


def test_convert_takes_over_dtype_and_mode():
    model = nn.Sequential(nn.Linear(2, 2, dtype=torch.float64), nn.ReLU()).eval()
    convert(model, {nn.ReLU: lambda: PLU(learnable=True)})
    assert model[1].raw_alpha.dtype == torch.float64
    assert not model[1].training


def test_convert_changes_nothing_if_a_replacement_fails():
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    with pytest.raises(ValueError, match="alpha must be"):
        convert(model, {nn.ReLU: PLU, nn.Tanh: lambda: PLU(alpha=-1)})
    assert isinstance(model[0], nn.ReLU)


@pytest.mark.parametrize("replacements", [{"ReLU": PLU}, {nn.ReLU: PLU()}, {nn.ReLU: None}])
def test_convert_takes_types_and_functions(replacements):
    with pytest.raises(TypeError, match="from a module type to a function that makes a module"):
        convert(nn.Sequential(nn.ReLU()), replacements)


def test_convert_cannot_replace_the_model_itself():
    with pytest.raises(TypeError, match="the model itself is a ReLU"):
        convert(nn.ReLU(), {nn.ReLU: PLU})


@pytest.mark.parametrize(
    "activation", [PLU(), PLU(0.3, 0.5), PLU(learnable=True, num_parameters=512), nn.ReLU()], ids=repr
)
@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_init_keeps_the_variance(activation, mode):
    generator = torch.Generator().manual_seed(0)
    layers = [nn.Linear(512, 512)]
    # gradients: one layer, for weights that keep them let the activations drift from the variance 1 of the gain
    for _ in range(8 if mode == "forward" else 1):
        layers += [activation, nn.Linear(512, 512)]
    model = init_(nn.Sequential(*layers), mode=mode, generator=generator)
    x = torch.randn(512, 512, generator=generator).requires_grad_()
    y = model(x)
    (dx,) = torch.autograd.grad(y, x, torch.randn(y.shape, generator=generator))
    kept = y if mode == "forward" else dx
    # ReLU: E[relu(z)^2] = 1/2, so its gain keeps both
    assert kept.var().item() == pytest.approx(1, rel=0.35)


def test_init_uses_the_gain_of_the_activation_before():
    torch.manual_seed(0)
    model = init_(nn.Sequential(nn.Conv2d(16, 64, 3), nn.MaxPool2d(2), PLU(), nn.Flatten(), nn.Linear(1024, 256)))
    assert model[0].weight.std().item() == pytest.approx(1 / (16 * 9) ** 0.5, rel=0.03)
    assert model[4].weight.std().item() == pytest.approx(plunit.gain() / 1024**0.5, rel=0.01)
    assert model[0].bias.eq(0).all()


def test_init_backward_uses_fan_out_and_the_backward_gain():
    torch.manual_seed(0)
    model = init_(nn.Sequential(PLU(0.3, 0.5), nn.Linear(1024, 256)), mode="backward")
    expected = plunit.gain(0.3, 0.5, mode="backward") / 256**0.5
    assert model[1].weight.std().item() == pytest.approx(expected, rel=0.01)


def test_init_gain_is_one_after_another_linear_and_after_what_has_no_known_gain():
    torch.manual_seed(0)
    layers = [nn.Linear(900, 900), PLU(), nn.Linear(900, 900), nn.Linear(900, 900), nn.GELU(), nn.Linear(900, 900)]
    model = init_(nn.Sequential(*layers))
    found = [layer.weight.std().item() * 30 for layer in model if isinstance(layer, nn.Linear)]
    assert found == pytest.approx([1, plunit.gain(), 1, 1], rel=0.01)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(64, 64, 4, stride=2, padding=1, groups=4),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
        nn.ConvTranspose1d(32, 64, 6, stride=3, groups=2),
        nn.Conv3d(16, 64, 2, stride=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_init_counts_the_terms_of_convolutions(layer, mode):
    torch.manual_seed(0)
    init_(layer, mode=mode)
    x = torch.randn(8, layer.in_channels, *[16] * len(layer.kernel_size), requires_grad=True)
    y = layer(x)
    kept = y if mode == "forward" else torch.autograd.grad(y, x, torch.randn_like(y))[0]
    inside = kept[(..., *[slice(3, -3)] * len(layer.kernel_size))]  # the padded rim sums fewer terms
    assert inside.var().item() == pytest.approx(1, rel=0.15)


def test_init_changes_nothing_if_a_gain_fails():
    model = nn.Sequential(nn.Linear(3, 3), PLU(0.0, 0.0), nn.Linear(3, 3))
    before = model[0].weight.clone()
    with pytest.raises(ValueError, match="no finite gain"):
        init_(model)
    assert torch.equal(model[0].weight, before)


def test_init_mode():
    with pytest.raises(ValueError, match="mode must be"):
        init_(nn.Linear(2, 2), mode="sideways")


def test_param_groups_keep_decay_off_alpha_and_c():
    model = nn.Sequential(nn.Linear(4, 8), PLU(learnable=True, num_parameters=8), nn.LayerNorm(8), PLU(learnable="c"))
    model[0].weight.requires_grad_(True)
    decayed, free = param_groups(model, weight_decay=0.5)
    assert [id(p) for p in decayed["params"]] == [id(model[0].weight)]
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.5, 0.0)
    assert len(free["params"]) == 1 + 2 + 2 + 1
    optimiser = torch.optim.AdamW([decayed, free], lr=0.1)
    before = model[1].alpha.detach().clone()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    torch.testing.assert_close(model[1].alpha, before)


def test_param_groups_skip_what_is_frozen():
    model = nn.Linear(3, 3).requires_grad_(False)
    assert [len(group["params"]) for group in param_groups(model, weight_decay=0.1)] == [0, 0]


def test_param_groups_bad_decay():
    with pytest.raises(ValueError, match="weight_decay must be >= 0, got -1"):
        param_groups(nn.Linear(2, 2), weight_decay=-1)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.relu, self.kept = nn.Linear(4, 4), nn.ReLU(), F.relu

    def forward(self, x):
        return torch.relu(self.linear(x)) + F.relu(x) + self.relu(x)


def test_convert_names_what_it_could_not_reach():
    model = nn.Sequential(Functional())
    with pytest.warns(UserWarning, match="could not replace") as caught:
        assert list(convert(model, {nn.ReLU: PLU})) == ["0.relu"]
    text = str(caught[0].message)
    assert "Functional.forward calls relu; replace the call by a PLU module" in text
    assert "0: attribute kept is the function relu; set it to a PLU()" in text
    assert text.count("\n- ") == 2  # and not self.relu(x)


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x)


def test_a_module_named_relu_is_reached():
    assert list(convert(nn.Sequential(Named()), {nn.ReLU: PLU})) == ["0.relu"]  # a warning would be an error


class OtherGELU(nn.Module):
    def forward(self, x):
        return x


def test_convert_names_a_class_of_the_same_kind():
    with pytest.warns(UserWarning, match=r"0: .*OtherGELU is a class of its own; add it to the replacements"):
        convert(nn.Sequential(OtherGELU(), nn.GELU()), {nn.GELU: PLU})


def test_convert_says_that_nothing_matched():
    with pytest.warns(UserWarning, match="found no module of the types GELU"):
        convert(nn.Sequential(nn.ReLU()), {nn.GELU: PLU})


TRANSFORMERS = {
    "layer": lambda layer, **options: layer,
    "encoder": lambda layer, **options: nn.TransformerEncoder(layer, 2),
    "transformer": lambda layer, **options: nn.Transformer(8, 2, 2, 1, 16, **options),
}


@pytest.mark.parametrize("activation", ["relu", "gelu", F.relu, nn.ReLU()], ids=["relu", "gelu", "F.relu", "module"])
@pytest.mark.parametrize("kind", TRANSFORMERS)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_transformer_evaluates_what_it_trains(activation, kind, padded):
    torch.manual_seed(0)
    options = {"dropout": 0.0, "activation": activation, "batch_first": True}
    model = TRANSFORMERS[kind](nn.TransformerEncoderLayer(8, 2, 16, **options), **options)
    model = nn.ModuleDict({"of": model})  # a layer is converted as part of a model
    convert(model, {nn.ReLU: PLU, nn.GELU: PLU})
    layers = [m for m in model.modules() if isinstance(m, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer)]
    assert [type(layer.activation) for layer in layers] == [PLU] * {"layer": 1, "encoder": 2, "transformer": 3}[kind]
    x = torch.randn(3, 5, 8)
    padding = torch.arange(5) >= torch.tensor([[5], [3], [4]])
    inputs = (x,) * (2 if kind == "transformer" else 1)
    masks = {"src_key_padding_mask": padding} if padded else {}
    trained = model["of"](*inputs, **masks)
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(model["of"](*inputs, **masks), trained)


@pytest.mark.parametrize("kind", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
@pytest.mark.parametrize("learnable", [False, True])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_of_a_transformer_has_the_new_activation(kind, learnable, copied):
    model = nn.Sequential(kind(8, 2, 16))
    convert(model, {nn.ReLU: lambda: PLU(learnable=learnable)})
    (layer,) = copied(model)
    assert type(layer.activation) is PLU
    assert layer.activation is layer.get_submodule("activation")
    assert layer.activation is not model[0].activation
    convert(nn.Sequential(layer), {PLU: nn.Tanh})
    assert type(layer.activation) is type(layer.get_submodule("activation")) is nn.Tanh


def test_hooks_move_and_can_be_removed():
    model, seen = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), []
    handles = [
        model[1].register_forward_hook(lambda module, args, output: seen.append("forward")),
        model[1].register_forward_pre_hook(lambda module, args: seen.append("pre")),
        model[1].register_full_backward_hook(lambda module, grads, outputs: seen.append("backward")),
    ]
    convert(model, {nn.ReLU: PLU})
    model(torch.randn(2, 4)).sum().backward()
    assert seen == ["pre", "forward", "backward"]
    for handle in handles:
        handle.remove()
    model(torch.randn(2, 4))
    assert len(seen) == 3


def test_the_factory_gets_the_old_module_if_it_wants_one():
    model = nn.Sequential(nn.LeakyReLU(0.2), nn.ReLU(inplace=True))
    convert(model, {nn.LeakyReLU: lambda old: PLU(alpha=old.negative_slope), nn.ReLU: PLU})
    assert model[0].initial_alpha == 0.2
    assert model[1].inplace


def test_learnable_replacements_are_where_their_neighbours_are():
    model = nn.Sequential(
        nn.Linear(2, 2, dtype=torch.float64), nn.ReLU(), nn.Linear(2, 2, dtype=torch.float32, device="meta"), nn.ReLU()
    )
    convert(model, {nn.ReLU: lambda: PLU(learnable=True)})
    assert (model[1].raw_c.dtype, model[1].raw_c.device.type) == (torch.float64, "cpu")
    assert (model[3].raw_c.dtype, model[3].raw_c.device.type) == (torch.float32, "meta")


def test_convert_of_a_type_instead_of_a_mapping():
    with pytest.raises(TypeError, match=r"as \{nn\.ReLU: PLU\}; got <class 'plunit"):
        convert(nn.Sequential(nn.ReLU()), PLU)


def test_init_of_a_weight_normed_layer():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(400, 400), PLU(), parametrizations.weight_norm(nn.Linear(400, 300)))
    init_(model)
    assert model[2].weight.std().item() == pytest.approx(plunit.gain() / 20, rel=0.02)
    assert model[2].bias.abs().max() == 0


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")
@pytest.mark.parametrize("wrap", [parametrizations.spectral_norm, nn.utils.weight_norm])
def test_init_of_a_weight_that_is_computed_changes_nothing(wrap):
    model = nn.Sequential(nn.Linear(4, 4), PLU(), wrap(nn.Linear(4, 4)))
    before = model[0].weight.clone()
    with pytest.raises(ValueError, match=r"is computed .*; call init_ before you add that"):
        init_(model)
    assert torch.equal(model[0].weight, before)


def test_one_value_can_be_sharded():
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        model = nn.Sequential(nn.Linear(4, 4), PLU(learnable=True))
        mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
        fully_shard(model, mesh=mesh)
        model(torch.randn(8, 4) * 5).sum().backward()
        assert model[1].raw_c.grad.full_tensor().item() != 0
    finally:
        distributed.destroy_process_group()
