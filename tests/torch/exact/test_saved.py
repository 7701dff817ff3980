"""Saved models: every piecewise-linear layer is read, and no code that the file names is executed."""

import os
import re
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from plunit.pieces import graphs, load
from plunit.torch import PLU, Residual
from plunit.torch.exact.network import LAYERS


def save(path, *layers):
    model = nn.Sequential(*layers).eval()
    torch.save(model, path)
    return model


def test_every_layer_that_has_pieces_can_be_loaded(tmp_path):
    small = [nn.ReLU(), nn.LeakyReLU(), nn.PReLU(3), nn.Hardtanh(), nn.ReLU6(), nn.Hardsigmoid(), nn.Identity()]
    units = [PLU(), PLU(learnable=True), PLU(learnable=True, num_parameters=3), nn.BatchNorm1d(3)]
    model = save(tmp_path / "model.pt", nn.Flatten(), nn.Linear(1, 3), *small, nn.Sequential(*units), nn.Linear(3, 2))
    x = torch.randn(20, 1)
    np.testing.assert_allclose(load(tmp_path / "model.pt")(x.numpy()), model(x).detach(), atol=1e-6)
    kinds = {type(module) for module in model.modules()}
    body = [nn.Conv2d(3, 3, 3, padding="same"), nn.BatchNorm2d(3), nn.MaxPool2d(3, 1, 1), nn.Dropout2d()]
    line = [nn.Conv1d(3, 2, 3), nn.MaxPool1d(2), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(3), nn.Dropout1d()]
    rest = [nn.AlphaDropout(), nn.FeatureAlphaDropout(), nn.Dropout(), nn.Flatten(1), nn.Linear(6, 1)]
    pools = [nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((4, 5)), nn.Flatten(2)]
    image = [nn.Unflatten(1, (3, 8, 8)), Residual(nn.Sequential(*body)), *pools, *line, *rest]
    model = save(tmp_path / "images.pt", *image)
    x = torch.randn(20, 192)
    np.testing.assert_allclose(load(tmp_path / "images.pt")(x.numpy()), model(x).detach(), atol=1e-5)
    assert kinds | {type(module) for module in model.modules()} == set(LAYERS)


def test_the_shape_of_an_image_is_passed_on(tmp_path):
    save(tmp_path / "image.pt", nn.Conv2d(1, 1, 2))
    assert load(tmp_path / "image.pt", (1, 3, 3)).inputs == 9
    with pytest.raises(ValueError, match=r"torch.save: layer '0', Conv2d.*shape=\(channels, height, width\)"):
        load(tmp_path / "image.pt")


def test_what_an_archive_unpacks_to_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "LIMIT", 100_000)
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/data.pkl", bytes(10**6))
    with pytest.raises(ValueError, match="unpacked file has 1,000,000 bytes"):
        load(tmp_path / "bomb.pt")


class Trap:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def damaged(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", b"junk")


BAD = {
    "tanh.pt": (
        lambda path: save(path, nn.Linear(1, 1), nn.Tanh()),
        "the file holds torch.nn.modules.activation.Tanh,",
    ),
    "state.pt": (
        lambda path: torch.save(nn.Linear(1, 1).state_dict(), path),
        "the file holds OrderedDict, not a model;",
    ),
    "damaged.pt": (damaged, "the file cannot be read as a saved model"),
    "norm.pt": (lambda path: torch.save(nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2)), path), "layer '1'"),
    "trap.pt": (
        lambda path: torch.save(Trap(str(path.with_suffix(".out"))), path),
        f"the file holds {os.mkdir.__module__}.mkdir, but",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_model_of_pieces_is_named_in_one_line(tmp_path, name):
    make, text = BAD[name]
    make(tmp_path / name)
    with pytest.raises(ValueError, match=re.escape(f"is a model saved by torch.save: {text}")) as error:
        load(tmp_path / name)
    assert str(error.value).startswith(str(tmp_path / name))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "trap.out").exists()
