"""PLU by name in libraries that look activations up; `make libraries` installs them and runs this file."""

import numpy as np
import pytest
import torch
from torch import nn

from plunit.torch import PLU, convert, plu

pytestmark = pytest.mark.filterwarnings("default")


def load(name):
    return pytest.importorskip(name, exc_type=(ImportError, RuntimeError))


def count(model):
    return sum(isinstance(module, PLU) for module in model.modules())


@pytest.mark.parametrize(("name", "size"), [("resnet18", 64), ("vit_tiny_patch16_224", 224)])
def test_timm(name, size):
    timm = load("timm")
    model = timm.create_model(name, act_layer=PLU)
    assert count(model) > 0
    assert model(torch.randn(1, 3, size, size)).shape == (1, 1000)


@pytest.fixture
def config():
    transformers = load("transformers")
    return transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=50
    )


def test_transformers(monkeypatch, config):
    from transformers import BertModel
    from transformers.activations import ACT2FN

    monkeypatch.setitem(ACT2FN, "plu", PLU)
    config.hidden_act = "plu"
    model = BertModel(config)
    assert count(model) == 2
    model(torch.ones(1, 4, dtype=torch.long)).last_hidden_state.sum().backward()


def test_convert_of_a_transformers_model_names_its_own_gelu(config):
    from transformers import BertModel
    from transformers.activations import GELUActivation

    with pytest.warns(UserWarning, match=r"GELUActivation is another class; add it to the replacements"):
        convert(BertModel(config), {nn.GELU: PLU})
    assert len(convert(BertModel(config), {GELUActivation: PLU})) == 2


def test_stable_baselines3():
    stable_baselines3 = load("stable_baselines3")
    options = {"n_steps": 64, "batch_size": 32, "policy_kwargs": {"activation_fn": PLU}, "device": "cpu"}
    agent = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", **options)
    assert count(agent.policy) == 4
    agent.learn(64)


def test_deepxde(monkeypatch):
    monkeypatch.setenv("DDE_BACKEND", "pytorch")
    deepxde = load("deepxde")
    network = deepxde.nn.FNN([1, 16, 16, 1], plu, "Glorot normal")
    x = torch.linspace(-3, 3, 7)[:, None].requires_grad_()
    (u_x,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(u_x.sum(), x)[0].abs().max() == 0


def test_monai():
    load("monai")
    from monai.networks.layers.factories import Act
    from monai.networks.nets import BasicUNet

    if "PLU" not in Act.names:
        Act.add_factory_callable("plu", lambda: PLU)
    model = BasicUNet(spatial_dims=2, features=(4, 4, 8, 8, 16, 4), act="plu")
    assert count(model) == 18
    assert model(torch.randn(1, 1, 32, 32)).shape == (1, 2, 32, 32)


class Regressor(nn.Module):
    def __init__(self, activation=nn.ReLU):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 8), activation(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


def test_skorch():
    skorch = load("skorch")
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 2), dtype=np.float32), rng.random((40, 1), dtype=np.float32)
    model = skorch.NeuralNetRegressor(Regressor, module__activation=PLU, max_epochs=2, verbose=0).fit(x, y)
    assert count(model.module_) == 1
