"""Curves in CSV, curves and networks in JSON: the same numbers come back, and anything else is one clear line."""

import csv
import json
import re

import numpy as np
import pytest
from random_networks import random_network, scaled_network

from plunit.pieces import activation, curve, load, load_json, network, save, save_csv, save_json

NAMES = ("knots", "slopes", "intercepts", "values", "tolerance")


def bits(line):
    arrays = [np.ascontiguousarray(getattr(line, name)) for name in NAMES]
    return [(array.shape, array.dtype, array.tobytes()) for array in arrays], line.patterns, line.pieces


def cancelling():
    """50 kinks that cancel up to rounding: within the tolerance, none of them counts."""
    out = np.tile([0.1, -0.1], 50)
    out[1::2] *= 1 + 1e-15
    bias = -np.repeat(np.linspace(-0.9, 0.9, 50), 2)
    found = curve(network([(np.ones((100, 1)), bias), activation.relu(), (out[None], [1.0])]), -1.0, 1.0)
    assert (found.patterns, found.pieces) == (51, 1)
    return found


CURVES = {
    "generic": lambda: [
        curve(random_network(seed, 1, 6, 3, outputs), -3.0, 1 / 3) for seed in (0, 1, 4, 12) for outputs in (1, 3)
    ],
    "wild": lambda: [curve(scaled_network(seed, 1, 5, 3), -3.0, 3.0) for seed in range(1, 80, 2)],
    "cancelling": lambda: [cancelling()],
}


@pytest.mark.parametrize("kind", CURVES)
def test_every_bit_of_a_curve_comes_back(kind, tmp_path):
    for found in (each for one in CURVES[kind]() for each in (one, one.merge())):
        save_json(found, tmp_path / "curve")
        assert bits(load_json(tmp_path / "curve")) == bits(found)
        (tmp_path / "curve").write_text((tmp_path / "curve").read_text(), encoding="utf-8-sig")
        assert load_json(tmp_path / "curve").patterns == found.patterns


@pytest.mark.parametrize("kind", CURVES)
def test_csv_has_every_bit_of_a_curve_too(kind, tmp_path):
    for found in CURVES[kind]():
        save_csv(found, tmp_path / "curve.csv")
        with (tmp_path / "curve.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        outputs = found.values.shape[1]
        names = ("slope", "intercept", "start", "end", "tolerance")
        assert header == ["low", "high", "patterns", *(f"{name}_{i}" for i in range(outputs) for name in names)]
        table = np.array(rows, dtype=float)
        np.testing.assert_array_equal(table[:, 0], found.knots[:-1])
        np.testing.assert_array_equal(table[:, 1], found.knots[1:])
        assert set(table[:, 2]) == {found.patterns}
        parts = (found.slopes, found.intercepts, found.values[:-1], found.values[1:], found.tolerance)
        np.testing.assert_array_equal(table[:, 3:].reshape(len(rows), outputs, 5), np.stack(parts, axis=2))


@pytest.mark.parametrize("text", ["about this", "long " * 20_000], ids=["short", "longer than the first bytes"])
@pytest.mark.parametrize("boxed", [False, True], ids=["network", "curve"])
def test_the_order_of_keys_does_not_matter(text, boxed, tmp_path):
    net, path = random_network(0, 1, 3, 1, 1), tmp_path / "net.json"
    save(net, path, [(-1.0, 1.0)] if boxed else None, names=["x"])
    keys = {"about": text, "name": "of a user's own", **json.loads(path.read_text())}
    x = np.linspace(-1, 1, 9)[:, None]
    for order in (list(keys), list(reversed(keys)), sorted(keys)):
        path.write_text(json.dumps({key: keys[key] for key in order}))
        np.testing.assert_allclose(load(path)(x), net(x), atol=1e-12)


def table(**changes):
    """A tent as JSON, with changes."""
    tent = {"knots": [0, 1, 2], "values": [[0], [1], [0]], "slopes": [[1], [-1]], "intercepts": [[0], [2]]}
    return json.dumps({**tent, "tolerance": [[0], [0]], "patterns": 2, **changes}).encode()


MESSAGES = [
    (b"", "Expecting value"),
    (b"\xff\xfe\x00", "codec"),
    (b"PK\x03\x04", "Expecting value"),
    (b"[1, 2]", "the content must be an object, got list"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"knots": []}', "the curve lacks intercepts, patterns, slopes, tolerance, values; save_json"),
    (table(values=[[0], [1, 2], [0]]), "values must be numbers in lists of equal lengths"),
    (table(knots=[[0], [1], [2]]), "knots must be numbers in lists of equal lengths, nested 1"),
    (table(knots=["0", "1", "2"]), "knots must be numbers"),
    (table(slopes=[[True], [False]]), "slopes must be numbers"),
    (table(knots=[0]), "a curve needs knots"),
    (table(values=[[0], [float("nan")], [0]]), "values must be finite, got nan"),
    (table(slopes=[[1], [5]]), "values and slopes must agree: between x = 1.0 and 2.0"),
    (table(patterns=1.5), "patterns must be an integer"),
    (b'{"layers": 3}', "layers must be a list of objects"),
    (b'{"layers": [{"weight": [[1]]}]}', "layer 0 must have weight and bias, or knots"),
    (b'{"layers": [{"weight": [[1], [1, 2]], "bias": [0]}]}', "weight must be numbers"),
    (b'{"layers": [{"knots": 1, "slopes": [[1]], "at_zero": [0]}]}', "knots must be numbers"),
]


@pytest.mark.parametrize(("content", "reason"), MESSAGES, ids=[repr(row[0])[:60] for row in MESSAGES])
def test_messages(content, reason, tmp_path):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        load_json(tmp_path / "other")
    assert str(error.value).startswith(f"{tmp_path / 'other'} is not a curve or a network: ")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        load_json(tmp_path / "none")


@pytest.mark.parametrize("domain", [(-3.0, 1 / 3), (1000.0, 1003.0), (-2e-3, -1e-3)], ids=str)
def test_a_curve_that_save_wrote_is_loaded_as_a_network(domain, tmp_path):
    for seed in range(0, 40, 4):
        net = random_network(seed, 1, 6, 3, 2)
        save(curve(net, *domain), tmp_path / "net.json")
        x = np.concatenate([np.linspace(*domain, 300), curve(net, *domain).knots])[:, None]
        np.testing.assert_allclose(load(tmp_path / "net.json")(x), net(x), rtol=0, atol=1e-11 * np.abs(net(x)).max())


def test_the_step_of_a_curve_keeps_its_height(tmp_path):
    net = network([([[1e13]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])])
    save(curve(net, -3.0, 3.0), tmp_path / "net.json")
    x = [[-3.0], [0.2], [0.4], [3.0]]
    np.testing.assert_allclose(load(tmp_path / "net.json")(x).ravel(), [-1, -1, 1, 1], rtol=1e-14)


def numbers(net):
    parts = [(layer.weight, layer.bias) for layer in net.layers]
    parts += [(f.knots, f.slopes, f.at_zero) for _, f in net.hidden]
    return [array for part in parts for array in part]


AFFINE = network([([[1.0, 2.0, 1e-300]], [4.0])])


@pytest.mark.parametrize("mark", ["utf-8", "utf-8-sig"])
def test_every_number_of_a_network_comes_back(mark, tmp_path):
    """Also if an editor has put a byte-order mark first."""
    for net in [AFFINE, *(make(i, 3, 5, 3) for make in (random_network, scaled_network) for i in range(12))]:
        save(net, tmp_path / "net.json")
        text = (tmp_path / "net.json").read_text()
        assert "Infinity" not in text
        (tmp_path / "net.json").write_text(text, encoding=mark)
        for back in (load_json(tmp_path / "net.json"), load(tmp_path / "net.json")):
            for before, after in zip(numbers(net), numbers(back), strict=True):
                np.testing.assert_array_equal(after, before)
