"""The contract of importers, on every format: recognised by content, read correctly, or refused in one clear line."""

import contextlib
import dataclasses
import pickle
import re
import sys
import zipfile

import numpy as np
import pytest
from model_files import POINTS, WRITERS

from plunit.pieces import Curve, graphs, load, save_csv
from plunit.pieces.formats import importer, reading
from plunit.pieces.formats.importer import Content
from plunit.pieces.formats.reading import IMPORTERS, REFUSED

NAMES = [each.name for each in IMPORTERS]
PACKAGES = {  # the formats that need one
    "an ONNX model": "onnx",
    "a model saved by torch.save": "torch",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a function that writes a file of a format once; its extension is none, or that of another format."""
    files = {}

    def write(name):
        if name not in files:
            files[name] = WRITERS[name](tmp_path_factory.mktemp("models") / "model.csv")
        return files[name]

    return write


def one_line(path, action=load, kind=ValueError):
    with pytest.raises(kind) as error:
        action(path)
    text = str(error.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    return text


def test_every_importer_has_a_row():
    assert set(WRITERS) == set(NAMES)
    assert set(PACKAGES) <= set(NAMES)
    assert len(set(NAMES)) == len(IMPORTERS)


@pytest.mark.parametrize("name", NAMES)
def test_the_network_is_the_function_of_its_framework(name, written):
    file = written(name)
    net = load(file.path)
    assert (net.inputs, net.outputs, len(net.hidden)) == (3, 2, file.hidden)
    np.testing.assert_allclose(net(POINTS), file.values, rtol=1e-5, atol=file.atol)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "a .nnet file"])
def test_plu_comes_back_as_plu(name, written):
    f = load(written(name).path).layers[0].activation
    assert f.knots.tolist() == [[-1.0, 1.0]] * 5
    np.testing.assert_allclose(f.slopes, np.broadcast_to([0.1, 1.0, 0.1], (5, 3)), rtol=1e-7)
    assert not f.at_zero.any()


@pytest.mark.parametrize("name", NAMES)
def test_only_one_format_recognises_the_file(name, written):
    content = Content.of(written(name).path)
    assert [each.name for each in (*IMPORTERS, *REFUSED) if each.recognises(content)] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_package_is_named(name, written, monkeypatch):
    if name not in PACKAGES:
        pytest.skip("this format needs only NumPy")
    path = written(name).path
    for module in [module for module in sys.modules if module.partition(".")[0] == PACKAGES[name]]:
        monkeypatch.setitem(sys.modules, module, None)
    for module in [module for module in sys.modules if module.startswith("plunit.torch")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    text = one_line(path, kind=ModuleNotFoundError)
    extra = {"onnx": "fit"}.get(PACKAGES[name], PACKAGES[name])
    needed = f"reading it needs {PACKAGES[name]}, which is not installed; pip install 'plunit[{extra}]'"
    assert text == f"{path} is {name}; {needed}"


@pytest.mark.parametrize("error", [ImportError(), ImportError("libx.so: no such\nfile"), ModuleNotFoundError(name="x")])
def test_a_broken_package_is_not_taken_for_a_missing_one(error, written, monkeypatch):
    path = written("an ONNX model").path

    def read(*args):
        raise error

    monkeypatch.setattr(reading, "IMPORTERS", [dataclasses.replace(each, read=read) for each in IMPORTERS])
    text = one_line(path, kind=ImportError)
    reason = " ".join(str(error).split()) or type(error).__name__
    assert text.endswith(f"; reading it fails at an import: {reason}; repair or reinstall the package")
    assert "None" not in text


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_too_large_is_not_read(name, written, monkeypatch):
    path = written(name).path
    monkeypatch.setattr(graphs, "LIMIT", path.stat().st_size - 1)
    assert f"is {name}: the file has {path.stat().st_size:,} bytes; the limit is" in one_line(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_that_is_too_wide_is_not_built(name, written, monkeypatch):
    if name == "a model saved by torch.save":
        pytest.skip("plunit.torch builds the network, from tensors that exist already")
    path = written(name).path
    load(path)
    monkeypatch.setattr(importer, "check_bytes", lambda what, count: refuse(what) if "layer of" in what else None)
    assert re.search(r"too wide: a layer of \d+ units", one_line(path))


def refuse(what):
    raise ValueError(f"too wide: {what}")


def damaged(content, seed):
    """Cut a file, change some bytes of it, or repeat a part."""
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    if seed % 3 == 0:
        return bytes(data[: rng.integers(len(data))])
    if seed % 3 == 1:
        for place in rng.integers(len(data), size=int(rng.integers(1, 9))):
            data[place] = rng.integers(256)
        return bytes(data)
    start, end = sorted(rng.integers(len(data), size=2))
    return bytes(data[:end] + data[start:])


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seeds", [range(start, start + 20) for start in range(0, 60, 20)], ids=str)
def test_a_damaged_file_is_a_network_or_one_line(name, seeds, written, tmp_path):
    content = written(name).path.read_bytes()
    refusals = []
    for seed in seeds:
        path = tmp_path / f"{seed}"
        path.write_bytes(damaged(content, seed))
        with contextlib.suppress(ValueError):
            assert np.isfinite(load(path).layers[0].weight).all()
            continue
        refusals.append(one_line(path))
    # cut files, at least
    assert len(refusals) >= 6


class Trap:
    def __reduce__(self):
        return exec, ("import sys; sys.trapped = True",)


def numpy_archive(path):
    with path.open("wb") as file:
        np.savez(file, weight=np.eye(2))


def zipped(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")


LINE = Curve([0, 1], [[0], [1]], [[1]])
OTHERS = {
    "a pickle": (lambda path: path.write_bytes(pickle.dumps(Trap())), "plunit.pieces.from_sklearn"),
    "a Keras model": (lambda path: zipped(path, "config.json", "model.weights.h5"), "plunit.pieces.from_keras"),
    "an HDF5 file": (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100)), "plunit.pieces.from_keras"),
    "a safetensors file": (lambda path: path.write_bytes(b"\x02" + bytes(7) + b"{}"), "plunit.torch.to_network"),
    "an archive of NumPy arrays": (numpy_archive, "plunit.pieces.save_json"),
    "a curve in CSV": (lambda path: save_csv(LINE, path), "save the network itself, or its curve, as .json"),
    "a TorchScript program": (lambda path: zipped(path, "m/data.pkl", "m/constants.pkl"), "torch.save(model, path)"),
    "a program of torch.export": (lambda path: zipped(path, "m/archive_format", "m/data.pkl"), "torch.onnx.export"),
}


def test_every_refusal_has_a_row():
    assert {each.name for each in REFUSED} == set(OTHERS)


@pytest.mark.parametrize("name", OTHERS)
def test_a_known_format_that_is_not_read_is_named_with_the_remedy(name, tmp_path):
    make, remedy = OTHERS[name]
    make(tmp_path / "model.onnx")
    text = one_line(tmp_path / "model.onnx")
    assert f"is {name}: " in text
    assert remedy in text
    assert not hasattr(sys, "trapped")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"\xff" * 50,
        b"\x08\x08",
        b"{}",
        b'{"model": {"layers": [], "knots": []}}',
        b'{"about": "layers", "lay',
        b'{"a":' * 100_000,
        b"// only a comment\n",
        b"4,1,\n1,2,\n",
        b"1,2\n",
        b"\x00" * 64,
        b"12345678{}",
    ],
    ids=lambda content: repr(content[:40]),
)
def test_an_unknown_format_is_one_line(content, tmp_path):
    (tmp_path / "model.onnx").write_bytes(content)
    text = one_line(tmp_path / "model.onnx")
    assert "has no known format; load reads an ONNX model, " in text


@pytest.mark.parametrize(("size", "text"), [(importer._HEAD, ""), (importer._HEAD + 1, "a" * (importer._HEAD - 1))])
def test_only_a_text_that_continues_may_end_within_a_character(size, text, tmp_path):
    (tmp_path / "text").write_bytes(b"a" * (importer._HEAD - 1) + "\u00e9".encode()[: size - importer._HEAD + 1])
    assert Content.of(tmp_path / "text").text() == text


def test_a_folder_and_a_missing_file(tmp_path):
    assert "is a folder" in one_line(tmp_path)
    with pytest.raises(FileNotFoundError, match="none"):
        load(tmp_path / "none")
