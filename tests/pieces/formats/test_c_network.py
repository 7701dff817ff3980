"""A network as C: the program is the network, to the bound that the header states."""

import re
import subprocess
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from compilers import LANGUAGES, NUMBERS, SANITIZER, call_c, compile_c
from fixed_networks import mixed
from random_networks import random_network, scaled_network
from rational_networks import forward, rational

from plunit.pieces import activation, ensemble, network, save_c
from plunit.pieces.formats.c_text import origin
from plunit.pieces.networks import Network

NETS = {
    "PLU, 2 inputs": random_network(4, 2, 8, 3, 2),
    "generic, 5 inputs": random_network(0, 5, 8, 3, 3),
    "sparse, 3 inputs": random_network(2, 3, 8, 2, 1),
    "one affine layer": network([([[1.5, -2.0], [0.1, 3.0]], [0.25, 0.0])]),
    "no knots": network([([[1.5, -2.0]], [0.25]), activation.identity(), ([[0.1]], [1.0])]),
}


NETS |= {f"mixed {seed}": mixed(seed) for seed in range(3)}


def points(net, dtype, count=400, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (count, net.inputs)).astype(NUMBERS[dtype])


def stated(path):
    text = re.search(r"exact arithmetic by at most ([^\n]*)", path.read_text()).group(1)
    return np.array([float(number) for number in text.split(", ")])


def exact(net, x):
    layers = rational(net)
    return [forward(layers, [Fraction(float(number)) for number in row]) for row in x]


def largest_gap(y, want):
    rows = zip(y, want, strict=True)
    gaps = [[abs(Fraction(float(a)) - b) for a, b in zip(*row, strict=True)] for row in rows]
    return np.array([float(max(column)) for column in zip(*gaps, strict=True)])


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("name", NETS)
def test_the_program_keeps_the_bound(name, dtype, tmp_path):
    net = NETS[name]
    save_c(net, tmp_path / "f.h", "f", dtype=dtype, box=[(-2, 2)] * net.inputs)
    x = points(net, dtype)
    y = call_c("f", x, net.outputs, tmp_path, (dtype, dtype))
    error = largest_gap(y, exact(net, x))
    bound, unit = stated(tmp_path / "f.h"), np.finfo(NUMBERS[dtype]).eps
    assert (error <= bound).all()
    assert (bound <= 3e4 * unit * (1 + np.abs(y).max(axis=0))).all()
    np.testing.assert_allclose(y, net(x), atol=2 * bound.max())


def test_knots_between_floats_are_within_the_bound(tmp_path):
    """Kinks at 1000.1 and 1000.7, which float rounds to other places, and points on both sides of them."""
    net = network(
        [([[1.0], [-1.0], [10.0]], [-1000.1, 1000.7, -10004.0]), activation.plu(0.1, 0.3), ([[9, 5, -7]], [0.1])]
    )
    save_c(net, tmp_path / "f.h", "f", dtype="float", box=[(1000.0, 1001.0)])
    kinks = np.float32([999.8, 1000.1, 1000.4, 1000.43, 1000.7, 1001.0])
    sides = [np.nextafter(kinks, np.float32(end)) for end in (-np.inf, np.inf)]
    x = np.concatenate([kinks, *sides, np.random.default_rng(0).uniform(1000, 1001, 500).astype(np.float32)])[:, None]
    x = x[(x[:, 0] >= 1000) & (x[:, 0] <= 1001)]
    error = largest_gap(call_c("f", x, 1, tmp_path, ("float", "float")), exact(net, x))
    assert 1e-4 < error[0] <= stated(tmp_path / "f.h")[0]


@pytest.mark.parametrize("seed", range(1, 12, 2))
def test_wild_scales_keep_the_bound(seed, tmp_path):
    net = scaled_network(seed, 2, 5, 3)
    save_c(net, tmp_path / "f.h", "f", box=[(-2, 2)] * 2)
    x = points(net, "double", 100)
    assert (largest_gap(call_c("f", x, net.outputs, tmp_path), exact(net, x)) <= stated(tmp_path / "f.h")).all()


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("flags", [SANITIZER, ("-O3",)], ids=["sanitizer", "O3"])
def test_every_compiler_gives_the_same(dtype, language, flags, tmp_path):
    net = NETS["mixed 0"]
    save_c(net, tmp_path / "f.h", "f", dtype=dtype, box=[(-2, 2)] * 3)
    x = points(net, dtype)
    found = call_c("f", x, 2, tmp_path, (dtype, dtype), language, flags)
    np.testing.assert_allclose(found, net(x), atol=2 * stated(tmp_path / "f.h").max())


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_raw_inputs_and_outputs(dtype, tmp_path):
    net = NETS["generic, 5 inputs"]
    shift, scale = np.array([10.0, -3.0, 0.0, 1e3, 0.1]), np.array([2.0, 0.3, 1.0, 50.0, 1e-3])
    box = np.stack([shift - 2 * scale, shift + 2 * scale], axis=1)
    save_c(
        net,
        tmp_path / "f.h",
        "f",
        dtype=dtype,
        box=box,
        shift=shift,
        scale=scale,
        output_shift=[1.0, 2.0, 3.0],
        output_scale=10,
    )
    x = np.random.default_rng(0).uniform(box[:, 0], box[:, 1], (300, 5)).astype(NUMBERS[dtype])
    y = call_c("f", x, 3, tmp_path, (dtype, dtype))
    layers = rational(net)
    exact_shift, exact_scale = [Fraction(s) for s in shift], [Fraction(s) for s in scale]
    scaled = [
        [(Fraction(float(a)) - b) / c for a, b, c in zip(row, exact_shift, exact_scale, strict=True)] for row in x
    ]
    want = [[10 * value + i + 1 for i, value in enumerate(forward(layers, row))] for row in scaled]
    assert (largest_gap(y, want) <= stated(tmp_path / "f.h")).all()


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_self_test_sees_a_changed_weight(dtype, language, tmp_path):
    net = NETS["mixed 1"]
    save_c(net, tmp_path / "f.h", "f", dtype=dtype, box=[(-2, 2)] * 3)
    program = compile_c('#define f_SELF_TEST\n#include "f.h"\n', tmp_path, language)
    assert subprocess.run([program]).returncode == 0
    text = (tmp_path / "f.h").read_text()
    first = re.search(r"f_bias2\[2\] = \{([^,]*),", text).group(1)
    worse = f"{float(first.rstrip('f')) + 1e-3}{'f' if dtype == 'float' else ''}"
    (tmp_path / "f.h").write_text(text.replace(first, worse))
    program = compile_c('#define f_SELF_TEST\n#include "f.h"\n', tmp_path, language)
    assert subprocess.run([program]).returncode == 1


@pytest.mark.parametrize("name", ["f", "F"])
def test_two_headers_go_together(name, tmp_path):
    for each, net in (("f", NETS["mixed 0"]), ("F", NETS["mixed 1"])):
        save_c(net, tmp_path / f"{ord(each)}.h", each)
    net = NETS["mixed 0" if name == "f" else "mixed 1"]
    x = points(net, "double")
    np.testing.assert_allclose(call_c(name, x, 2, tmp_path), net(x), rtol=1e-9, atol=1e-9)


def test_equal_activations_are_one_row(tmp_path):
    net = network([(np.ones((7, 1)), np.zeros(7)), activation.plu(), (np.ones((1, 7)), [0.0])])
    save_c(net, tmp_path / "f.h", "f")
    text = (tmp_path / "f.h").read_text()
    assert "f_knots0[1][2] = {{-1.0, 1.0}};" in text
    assert "kind" not in text


@pytest.mark.parametrize("word", ["malloc", "math.h", "#include", "INFINITY", "inf", "nan"])
def test_nothing_else_is_used(word, tmp_path):
    save_c(NETS["mixed 0"], tmp_path / "f.h", "f", box=[(-2, 2)] * 3)
    assert not re.search(rf"\b{word}\b", (tmp_path / "f.h").read_text())


def test_the_header_says_where_it_comes_from(tmp_path):
    net = NETS["mixed 0"]
    save_c(net, tmp_path / "f.h", "f")
    assert origin(net) in (tmp_path / "f.h").read_text()
    assert re.fullmatch(r"plunit [\d.]+; first 32 hex digits of the numbers' SHA-256: [0-9a-f]{32}", origin(net))
    other = Network((replace(net.layers[0], bias=net.layers[0].bias + 1e-16), *net.layers[1:]))
    assert origin(other) != origin(net)


BAD = {
    "an ensemble": ({"box": None}, "an ensemble of 2"),
    "a short box": ({"box": [(-1, 1)]}, "a box of 2 input(s) is 2 pair(s) (low, high), got 1"),
    "half a box": ({"box": (-1, 1)}, "a box of 2 input(s) is 2 pair(s) (low, high), got (-1, 1)"),
    "an empty box": ({"box": [(1, 1), (0, 1)]}, "needs finite low < high"),
    "a self-test": ({"self_test": -1}, "self_test must be a number of points, 0 or more, got -1"),
    "a type": ({"dtype": "half"}, "dtype must be one of double, float, got 'half'"),
    "no scale": ({"scale": [1, 0]}, "scale must not be 0"),
    "three shifts": ({"shift": [1, 2, 3]}, "shift must be a finite number or 2 of them"),
    "too large": ({"dtype": "float", "output_scale": 1e40}, "too large for float"),
    "too large a box": ({"dtype": "float", "box": [(-1e38, 1e38)] * 2}, "in this box, too large for float32"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_written_is_one_line(name, tmp_path):
    options, reason = BAD[name]
    net = network([([[1.0, 2.0]], [0.0]), activation.plu(), ([[1.0]], [0.0])])
    if name == "an ensemble":
        net = ensemble([(np.ones((1, 2, 2)), np.zeros((1, 2)))])
    with pytest.raises(TypeError if name == "an ensemble" else ValueError, match=re.escape(reason)):
        save_c(net, tmp_path / "f.h", "f", **options)
    assert not (tmp_path / "f.h").exists()


SMALL = network([(np.eye(2), [0.0, 0.0]), activation.plu(), ([[1.0, 2.0]], [0.5])])


@pytest.mark.parametrize("name", ["i", "y", "j", "gap", "x"])
def test_a_name_of_one_letter_has_a_self_test(name, tmp_path):
    save_c(SMALL, tmp_path / "f.h", name, box=[(-1, 1)] * 2)
    program = compile_c(f'#define {name}_SELF_TEST\n#include "f.h"\n', tmp_path)
    assert subprocess.run([program]).returncode == 0
