"""The contract of exporters, on every format that `save` writes."""

import contextlib
import os

import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import curve, load, save
from plunit.pieces.formats.exporter import EXPORTERS
from plunit.pieces.formats.importer import Content
from plunit.pieces.formats.reading import IMPORTERS

BOX = (-2.0, 3.0)
PACKAGES = {".onnx": "onnx"}


@pytest.fixture(params=EXPORTERS)
def ending(request):
    pytest.importorskip(PACKAGES.get(request.param, "numpy"))
    return request.param


def written(path, inputs=None, *, boxed=True):
    inputs = inputs or (1 if EXPORTERS[path.suffix.lower()].only_curves else 2)
    net = random_network(5, inputs, 4, 2, 1)
    save(net, path, [BOX] * inputs if boxed else None)
    return net


def test_the_bytes_are_the_same_each_time_whatever_the_case_of_the_ending(ending, tmp_path):
    paths = [tmp_path / folder / f"net{end}" for folder, end in (("a", ending), ("b", ending.upper()))]
    for path in paths:
        path.parent.mkdir()
        written(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_write_that_is_interrupted_leaves_the_old_file(ending, tmp_path, monkeypatch):
    path = tmp_path / f"net{ending}"
    path.write_bytes(b"old")

    def press(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", press)
    with pytest.raises(KeyboardInterrupt):
        written(path)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [(path.name, b"old")]


def test_the_box_is_asked_for_only_where_it_is_needed(ending, tmp_path):
    path, needed = tmp_path / f"net{ending}", EXPORTERS[ending].only_curves
    with pytest.raises(ValueError, match=f"{ending} file needs a box") if needed else contextlib.nullcontext():
        written(path, boxed=False)
    assert path.exists() != needed


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_other_numbers_of_inputs_are_refused(ending, inputs, tmp_path):
    path = tmp_path / f"net{ending}"
    taken = inputs == 1 or not EXPORTERS[ending].only_curves
    with contextlib.nullcontext() if taken else pytest.raises(ValueError, match=f"the network has {inputs}"):
        written(path, inputs)
    assert path.exists() == taken


def test_what_can_be_read_comes_back_also_outside_the_box(ending, tmp_path):
    path = tmp_path / f"net{ending}"
    net = written(path)
    if not any(importer.recognises(Content.of(path)) for importer in IMPORTERS):
        pytest.skip("this format is not read")
    x = np.concatenate([np.random.default_rng(0).uniform(-size, size, (100, net.inputs)) for size in (3, 1e3)])
    np.testing.assert_allclose(load(path)(x), net(x), rtol=1e-12, atol=1e-12)


def test_a_curve_is_written_as_that_of_its_network(ending, tmp_path):
    paths, net = [tmp_path / folder / f"net{ending}" for folder in "ab"], random_network(5, 1, 4, 2, 1)
    for path, function in zip(paths, (net, curve(net, *BOX)), strict=True):
        path.parent.mkdir()
        save(function, path, [BOX] if function is net else None, names=["temp"])
    whole, alone = (path.read_bytes() for path in paths)
    assert (whole == alone) == EXPORTERS[ending].only_curves  # the others hold the whole network
    assert (b"temp" in alone) == (ending != ".csv")


@pytest.mark.parametrize("inputs", [1, 2])
def test_names_of_inputs_are_in_the_file_and_change_nothing_else(ending, inputs, tmp_path):
    if inputs != 1 and EXPORTERS[ending].only_curves:
        pytest.skip("this format holds one input")
    path, plain, net = tmp_path / f"net{ending}", tmp_path / f"plain{ending}", random_network(5, inputs, 4, 2, 1)
    names = ["temp\N{DEGREE SIGN}", "*/ \x1b[31m\n"][:inputs]
    save(net, path, [BOX] * inputs, names=names, about="by hand\nof t.csv")
    save(net, plain, [BOX] * inputs)
    content = path.read_bytes()
    assert b"\x1b" not in content
    known = {
        ".h": ["/* by hand\n   of t.csv\n   x[0] = temp\N{DEGREE SIGN}", "\n   x[1] = * / \\x1b[31m\\n */"][:inputs],
        ".json": ['"by hand"', '"temp\\u00b0"', '"*/ \\\\x1b[31m\\\\n"'][: inputs + 1],
        ".onnx": ["by hand\nof t.csv", '["temp\\u00b0"', '"*/ \\\\x1b[31m\\\\n"'][: inputs + 1],
        ".csv": [],
    }
    assert [text for text in known[ending] if text.encode() not in content] == []
    if ending in (".json", ".onnx"):
        x = np.random.default_rng(0).uniform(*BOX, (200, inputs))
        np.testing.assert_array_equal(load(path)(x), load(plain)(x))
    if ending != ".csv":
        with pytest.raises(ValueError, match=f"one for each of {inputs} inputs?, got 3"):
            save(net, path, [BOX] * inputs, names="abc")
