"""Lookup tables: as few nodes as brute force finds, an error that holds at other points, bytes as C has them."""

import itertools
import math

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from plunit.expressions import parse
from plunit.fitting import lookup_table
from plunit.fitting.lookup_table import CODE, VALUE_BYTES, describe_table, find_table
from plunit.pieces import activation, network, quantize
from plunit.pieces.formats.c_header import save_c, table_bytes

FORMULAS = [
    ("sin(2*x)", [(-1, 2)], 0.01),
    ("sqrt(x**2 + y**2) * sin(3*x)", [(-2, 2), (-2, 2)], 0.15),
    ("exp(-x**2 - 9*y**2)", [(-2, 2), (-1, 1)], 0.1),
    ("x**2 + y/9", [(-1, 1), (0, 5)], 0.05),
    ("sin(x + y) * exp(-z**2)", [(-1, 1)] * 3, 0.1),
]


def largest_error(f, box, nodes, points):
    """The error of scipy's interpolation between the same nodes."""
    axes = [np.linspace(*side, n) for side, n in zip(box, nodes, strict=True)]
    values = f(*np.meshgrid(*axes, indexing="ij"))
    return np.abs(RegularGridInterpolator(axes, values)(points) - f(*points.T)).max()


@pytest.mark.parametrize(("text", "box", "error"), FORMULAS, ids=lambda value: value if isinstance(value, str) else "")
def test_no_smaller_table_is_as_close(text, box, error):
    f = parse(text)
    found = find_table(f, np.array(box, float), error, "float")
    dense = np.stack(np.meshgrid(*(np.linspace(*side, 61 if len(box) < 3 else 25) for side in box)), axis=-1).reshape(
        -1, len(box)
    )
    assert largest_error(f, box, found.nodes, dense) <= found.error * 1.03 <= error * 1.03
    assert found.size == 4 * math.prod(found.nodes)
    most = 0.8 * math.prod(found.nodes)
    numbers = range(2, 1 + max(2, int(most / 2 ** (len(box) - 1))))
    for nodes in itertools.product(numbers, repeat=len(box)):
        if (0.7 if len(box) < 3 else 0.98) * most < math.prod(nodes) <= most:
            assert largest_error(f, box, nodes, dense) > 0.97 * error, nodes


def test_values_of_sixteen_bits_are_rounded_and_cannot_be_closer_than_that():
    f, box = parse("30*x"), np.array([[-1.0, 1.0]])
    half = 60 / 65534 / 2
    assert 0 < find_table(f, box, 1.01 * half, "int16").error <= half
    assert find_table(f, box, 0.99 * half, "int16") is None
    assert find_table(f, box, 0.99 * half, "double").nodes == (2,)


def test_the_line_counts_the_tables_that_a_header_has(tmp_path):
    plu = activation.plu()
    net = network([(np.ones((3, 2)) / 3, [0.1, 0.2, -0.3]), plu, (np.ones((1, 3)), [0.0])])
    box = np.array([[-2.0, 2.0]] * 2)
    for function in (net, quantize(net, box), quantize(net, box, 8)):
        save_c(function, tmp_path / "f.h", "f")
        text = (tmp_path / "f.h").read_text()
        sizes = {"double": 8, "int8_t": 1, "int16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8}
        total = 0
        for line in text.splitlines():
            words = line.replace("[", " [").split()
            if words[:2] == ["static", "const"] and not any(
                part in line for part in ("_box", "_offset", "_scale", "_test")
            ):
                shape = [int(number.strip("[]")) for number in line[: line.index(" =")].split("[")[1:]]
                total += sizes[words[2]] * math.prod(shape)
        assert table_bytes(function) == total
    line = describe_table(parse("x*y"), box, 0.1, quantize(net, box))
    assert "2 x 2 nodes for the same error" in line
    assert f", {4 * VALUE_BYTES['int16']} bytes and {CODE['int16'][1]} of code; this network: " in line
    assert line.endswith("The table is smaller")


def test_the_search_gives_up_where_the_function_jumps(monkeypatch):
    measured = []
    measure = lookup_table._measure
    monkeypatch.setattr(
        lookup_table, "_measure", lambda *given: measured.append((found := measure(*given))[1]) or found
    )
    assert find_table(parse("floor(x)*y"), np.array([[-2.0, 2.0]] * 2), 1.02, "int16") is None
    assert sum(measured) < 2e8


def test_a_table_that_would_be_too_large_is_said():
    net = network([(np.ones((1, 1)), [0.0])])
    line = describe_table(parse("sin(40*x)"), np.array([[-6.0, 6.0]]), 1e-16, net)
    table = "lookup table with linear interpolation of double values"
    assert line == f"{table}: none with up to 16,777,216 nodes was found to have an error of at most 1e-16"
