"""Curves in CSV, curves and networks in JSON: the same numbers come back, and anything else is one clear line."""

import json
import re

import numpy as np
import pytest
from random_networks import random_network, scaled_network

from plunit.pieces import Curve, activation, curve, load, load_csv, load_json, network, save, save_csv, save_json

FORMATS = {"csv": (save_csv, load_csv), "json": (save_json, load_json)}
MAKERS = (random_network, scaled_network)
NAMES = ("knots", "slopes", "intercepts", "values", "tolerance")


def bits(line):
    arrays = {name: np.ascontiguousarray(getattr(line, name)) for name in NAMES}
    return (
        {name: (array.shape, array.dtype, array.tobytes()) for name, array in arrays.items()},
        line.patterns,
        line.pieces,
    )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", [0, 1, 4, 12])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_bit_comes_back(form, seed, outputs, tmp_path):
    save, load = FORMATS[form]
    found = curve(random_network(seed, 1, 6, 3, outputs), -3.0, 1 / 3)
    save(found, tmp_path / "curve")
    assert bits(load(tmp_path / "curve")) == bits(found)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("seed", range(1, 80, 2))
def test_wild_scales_come_back(form, merge, seed, tmp_path):
    save, load = FORMATS[form]
    found = curve(scaled_network(seed, 1, 5, 3), -3.0, 3.0)
    found = found.merged() if merge else found
    save(found, tmp_path / "curve")
    assert bits(load(tmp_path / "curve")) == bits(found)


@pytest.mark.parametrize("form", FORMATS)
def test_kinks_that_cancel_stay_one_piece(form, tmp_path):
    """50 kinks that cancel but for rounding: by the tolerance none of them counts."""
    save, load = FORMATS[form]
    weight, bias = np.ones((100, 1)), -np.repeat(np.linspace(-0.9, 0.9, 50), 2)
    out = np.tile([0.1, -0.1], 50)
    out[1::2] *= 1 + 1e-15
    found = curve(network([(weight, bias), activation.relu(), (out[None], [1.0])]), -1.0, 1.0)
    assert (found.patterns, found.pieces) == (51, 1)
    for each in (found, found.merged()):
        save(each, tmp_path / "curve")
        assert (load(tmp_path / "curve").patterns, load(tmp_path / "curve").pieces) == (51, 1)


def table(**changes):
    """A tent as JSON, with changes."""
    tent = {"knots": [0, 1, 2], "values": [[0], [1], [0]], "slopes": [[1], [-1]], "intercepts": [[0], [2]]}
    return json.dumps({**tent, "tolerance": [[0], [0]], "patterns": 2, **changes}).encode()


HEADER = b"low,high,patterns,slope_0,intercept_0,start_0,end_0,tolerance_0\n"

MESSAGES = {
    load_json: [
        (b"", "is not a curve or a network: Expecting value"),
        (b"[1, 2]", "it holds a list, not an object"),
        (b"[" * 100_000, "nested too deeply"),
        (
            b'{"knots": []}',
            "is not a curve: it lacks intercepts, patterns, slopes, tolerance, values; save_json",
        ),
        (table(values=[[0], [1, 2], [0]]), "values must be numbers in lists of equal lengths"),
        (table(knots=[[0], [1], [2]]), "knots must be numbers in lists of equal lengths, nested 1"),
        (table(knots=["0", "1", "2"]), "knots must be numbers"),
        (table(slopes=[[True], [False]]), "slopes must be numbers"),
        (table(knots=[0]), "a curve needs knots"),
        (table(values=[[0], [float("nan")], [0]]), "values must be finite, got nan"),
        (table(slopes=[[float("inf")], [-1]]), "slopes must be finite, got inf"),
        (table(knots=[0, 2, 1]), "knots must be increasing, got 2.0 before 1.0"),
        (table(slopes=[[1], [5]]), "values and slopes must agree: between x = 1.0 and 2.0"),
        (table(intercepts=[[0], [3]]), "intercept 3.0 of piece 1 contradicts"),
        (table(intercepts=[[0]]), "intercepts must have a number for each slope"),
        (table(patterns=-1), "patterns must be a positive integer"),
        (table(patterns=1.5), "patterns must be a positive integer"),
        (table(tolerance=[[-1], [0]]), "tolerance must be >= 0, got -1.0"),
        (table(tolerance=[[0, 0, 0]]), "tolerance must have a number for each slope"),
        (b'{"layers": 3}', "is not a network: layers must be a list of objects"),
        (b'{"layers": [{"weight": [[1]]}]}', "layer 0 must have weight and bias, or knots"),
        (b'{"layers": [{"weight": [[1], [1, 2]], "bias": [0]}]}', "weight must be numbers"),
        (b'{"layers": [{"knots": 1, "slopes": [[1]], "at_zero": [0]}]}', "is not a network: knots must be numbers"),
    ],
    load_csv: [
        (b"", "is not a curve: it starts ''"),
        (b"a,b,c\n1,2,3\n", "it starts 'a,b,c'"),
        (HEADER, "it has a header but no pieces; save_csv writes such files"),
        (HEADER + b"0,1,1,1,0,0,1,0\n1,2\n", "piece 1 has 2 columns, but the header has 8"),
        (HEADER + b"0,1,1,1,0,0,one,0\n", "could not convert string to float: 'one'"),
        (HEADER + b"0,1,2,1,0,0,1,0\n1.5,2,2,0,1,1,1,0\n", "piece 1 has low [1.5], but piece 0 has high [1.0]"),
        (HEADER + b"0,1,2,1,0,0,1,0\n1,2,2,0,3,3,3,0\n", "piece 1 has start [3.0], but piece 0 has end [1.0]"),
        (HEADER + b"0,1,1,7,0,0,1,0\n", "values and slopes must agree"),
        (HEADER + b"0,1,1,1,4,0,1,0\n", "intercept 4.0 of piece 0 contradicts"),
        (HEADER + b"0,1,2,1,0,0,1,0\n1,2,3,1,0,1,2,0\n", "patterns must hold one positive integer"),
        (HEADER + b"0,1,1,inf,0,0,1,0\n", "slopes must be finite, got inf"),
    ],
}
for rows in MESSAGES.values():
    rows += [(content, "is not a curve") for content in (b"\xff\xfe\x00", b"\x00" * 100, b"PK\x03\x04")]
CASES = [(load, *row) for load, rows in MESSAGES.items() for row in rows]


@pytest.mark.parametrize(("load", "content", "reason"), CASES, ids=[repr(case[1])[:60] for case in CASES])
def test_messages(load, content, reason, tmp_path):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        load(tmp_path / "other")
    assert str(error.value).startswith(f"{tmp_path / 'other'} is not a ")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        load_csv(tmp_path / "none")


def test_csv_is_a_table_of_pieces(tmp_path):
    save_csv(Curve([0, 1, 3], [[0], [1], [1]], [[1], [0]]), tmp_path / "curve.csv")
    header, *rows = (tmp_path / "curve.csv").read_text().splitlines()
    assert header + "\n" == HEADER.decode()
    assert [row.split(",")[:7] for row in rows] == [
        ["0.0", "1.0", "2", "1.0", "0.0", "0.0", "1.0"],
        ["1.0", "3.0", "2", "0.0", "1.0", "1.0", "1.0"],
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_a_byte_order_mark_is_no_part_of_the_curve(form, tmp_path):
    save, load = FORMATS[form]
    save(Curve([0, 1], [[0], [1]], [[1]]), tmp_path / "curve")
    text = (tmp_path / "curve").read_text()
    (tmp_path / "curve").write_text(text, encoding="utf-8-sig")
    assert load(tmp_path / "curve").values.ravel().tolist() == [0, 1]


@pytest.mark.parametrize("read", [load, load_json])
def test_a_byte_order_mark_is_no_part_of_the_network(read, tmp_path):
    net = network(LAYERS["two activations"])
    save(net, tmp_path / "net.json")
    (tmp_path / "net.json").write_text((tmp_path / "net.json").read_text(), encoding="utf-8-sig")
    np.testing.assert_array_equal(read(tmp_path / "net.json")([[1.0, 2.0]]), net([[1.0, 2.0]]))


@pytest.mark.parametrize("domain", [(-3.0, 1 / 3), (1000.0, 1003.0), (-2e-3, -1e-3)], ids=str)
@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_a_curve_that_save_wrote_is_loaded_as_a_network(seed, domain, tmp_path):
    net = random_network(seed, 1, 6, 3, 2)
    save(net, tmp_path / "net.json", [domain])
    back = load(tmp_path / "net.json")
    x = np.concatenate([np.linspace(*domain, 300), curve(net, *domain).knots])[:, None]
    np.testing.assert_allclose(back(x), net(x), rtol=0, atol=1e-11 * np.abs(net(x)).max())


def test_the_step_of_a_curve_keeps_its_height(tmp_path):
    net = network([([[1e13]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])])
    save(net, tmp_path / "net.json", [(-3.0, 3.0)])
    x = [[-3.0], [0.2], [0.4], [3.0]]
    np.testing.assert_allclose(load(tmp_path / "net.json")(x).ravel(), [-1, -1, 1, 1], rtol=1e-14)


LAYERS = {
    "two activations": [
        ([[1.0, -2.0], [0.5, 0.1], [3.0, 1e-300]], [0.0, 1.0, -1.0]),
        activation.plu(np.array([0.1, 0.2, 0.3]), 1.0),
        (np.ones((2, 3)), [0.0, 0.5]),
        activation.relu(),
        ([[1.0, -1.0]], [0.25]),
    ],
    "no activation": [([[1.0, 2.0, 3.0]], [4.0])],
}


def numbers(net):
    parts = [(layer.weight, layer.bias) for layer in net.layers]
    parts += [(f.knots, f.slopes, f.at_zero) for _, f in net.hidden]
    return [array for part in parts for array in part]


@pytest.mark.parametrize("net", [*map(network, LAYERS.values()), *(f(i, 3, 5, 3) for f in MAKERS for i in range(12))])
def test_every_number_of_a_network_comes_back(net, tmp_path):
    save(net, tmp_path / "net.json")
    for before, after in zip(numbers(net), numbers(load_json(tmp_path / "net.json")), strict=True):
        np.testing.assert_array_equal(after, before)
    assert "Infinity" not in (tmp_path / "net.json").read_text()
