"""Activations of models replaced by PLU, and those that cannot be reached named."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from plunit.torch import PLU, convert


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


class OtherGELU(nn.Module):
    def forward(self, x):
        return x


def test_convert_names_a_class_of_the_same_kind():
    with pytest.warns(UserWarning, match=r"0: .*OtherGELU is another class; add it to the replacements"):
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
    model[1].eval()
    with pytest.raises(ValueError, match="alpha"):
        convert(model, {nn.Linear: nn.Identity, nn.ReLU: lambda: PLU(alpha=-1)})  # nothing is changed
    convert(model, {nn.ReLU: lambda: PLU(learnable=True)})
    assert [module.training for module in model] == [True, False, True, True]
    assert (model[1].raw_c.dtype, model[1].raw_c.device.type) == (torch.float64, "cpu")
    assert (model[3].raw_c.dtype, model[3].raw_c.device.type) == (torch.float32, "meta")
