"""The contract of exporters, on every format that `save` writes."""

import os

import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import load, save
from plunit.pieces.formats.importer import Content
from plunit.pieces.formats.loading import IMPORTERS
from plunit.pieces.formats.exporter import EXPORTERS

BOX = (-2.0, 3.0)
PACKAGES = {".onnx": "onnx"}


@pytest.fixture(params=EXPORTERS)
def ending(request):
    pytest.importorskip(PACKAGES.get(request.param, "numpy"))
    return request.param


def written(path, inputs, *, boxed=True):
    net = random_network(5, inputs, 4, 2, 1)
    save(net, path, [BOX] * inputs if boxed else None)
    return net


def test_the_bytes_are_the_same_each_time(ending, tmp_path):
    inputs = (EXPORTERS[ending].inputs or (2,))[-1]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / f"net{ending}", inputs)
    assert (tmp_path / "a" / f"net{ending}").read_bytes() == (tmp_path / "b" / f"net{ending}").read_bytes()


def test_a_write_that_is_interrupted_leaves_the_old_file(ending, tmp_path, monkeypatch):
    inputs, path = (EXPORTERS[ending].inputs or (2,))[-1], tmp_path / f"net{ending}"
    path.write_bytes(b"old")

    def press(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", press)
    with pytest.raises(KeyboardInterrupt):
        written(path, inputs)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(path.name, b"old")]


def test_the_case_of_the_ending_does_not_matter(ending, tmp_path):
    inputs = (EXPORTERS[ending].inputs or (2,))[-1]
    for folder, name in (("a", f"net{ending}"), ("b", f"net{ending.upper()}")):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / name, inputs)
    assert (tmp_path / "a" / f"net{ending}").read_bytes() == (tmp_path / "b" / f"net{ending.upper()}").read_bytes()


def test_the_box_is_asked_for_only_where_it_is_needed(ending, tmp_path):
    inputs, path = (EXPORTERS[ending].inputs or (2,))[-1], tmp_path / f"net{ending}"
    if EXPORTERS[ending].needs_box:
        with pytest.raises(ValueError, match=rf"a \{ending} file needs a box, a pair \(low, high\) for each input"):
            written(path, inputs, boxed=False)
    else:
        written(path, inputs, boxed=False)
    assert path.exists() != EXPORTERS[ending].needs_box


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_other_numbers_of_inputs_are_refused(ending, inputs, tmp_path):
    path = tmp_path / f"net{ending}"
    taken = inputs in (EXPORTERS[ending].inputs or (inputs,))
    if taken:
        written(path, inputs)
    else:
        with pytest.raises(ValueError, match=f"and the network has {inputs}"):
            written(path, inputs)
    assert path.exists() == taken


def test_what_can_be_read_comes_back(ending, tmp_path):
    path = tmp_path / f"net{ending}"
    net = written(path, (EXPORTERS[ending].inputs or (2,))[-1])
    if not any(importer.recognises(Content.of(path)) for importer in IMPORTERS):
        pytest.skip("this format is not read")
    x = np.random.default_rng(0).uniform(*BOX, (200, net.inputs))
    np.testing.assert_allclose(load(path)(x), net(x), rtol=1e-12, atol=1e-12)
