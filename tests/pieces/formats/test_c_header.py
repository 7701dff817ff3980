"""Headers in C: programs stay within the bound that their header states, and in fixed point have the same bits."""

import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from compilers import LANGUAGES, NUMBERS, SANITIZER, call_c, compile_c
from fixed_networks import NETS as FIXED
from fixed_networks import corners, mixed
from random_networks import random_network, scaled_network
from rational_networks import forward, rational

from plunit.pieces import Curve, activation, curve, ensemble, error_bound, network, quantize, save_c
from plunit.pieces.formats.c_text import describe_origin, is_name
from plunit.pieces.formats.exporter import c_name
from plunit.pieces.networks import Network

NETS = {
    "PLU, 2 inputs": random_network(4, 2, 8, 3, 2),
    "generic, 5 inputs": random_network(0, 5, 8, 3, 3),
    "sparse, 3 inputs": random_network(2, 3, 8, 2, 1),
    "one affine layer": network([([[1.5, -2.0], [0.1, 3.0]], [0.25, 0.0])]),
    "no knots": network([([[1.5, -2.0]], [0.25]), activation.identity(), ([[0.1]], [1.0])]),
    **{f"mixed {seed}": mixed(seed) for seed in range(3)},
    **{f"wild {seed}": scaled_network(seed, 2, 5, 3) for seed in (1, 5, 9)},
}
EDGES = ("5 inputs", "mixed 0", "integers", "far box", "large biases", "many knots", "steep")
LINE = Curve([0, 1], [[0], [1]], [[1]])
LINEAR = network([([[2.0]], [1.0]), activation.plu(1.0), ([[3.0]], [0.0])])
STEP = curve(network([([[1e13]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])]), -3.0, 3.0)
SMALL = network([([[1.0, 2.0]], [0.0]), activation.plu(), ([[1.0]], [0.0])])


@cache
def quantized(name, bits=16):
    return quantize(*FIXED[name], bits)


def stated(path):
    text = re.search(r"exact arithmetic by at most ([^\n]*)", path.read_text()).group(1)
    return np.array([float(number) for number in text.split(", ")])


def points(net, dtype):
    return np.random.default_rng(0).uniform(-2, 2, (200, net.inputs)).astype(NUMBERS[dtype])


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
    bound, unit = stated(tmp_path / "f.h"), np.finfo(NUMBERS[dtype]).eps
    assert f"Call: {dtype} x[{net.inputs}], y[{net.outputs}]; f(x, y);" in (tmp_path / "f.h").read_text()
    assert (largest_gap(y, exact(net, x)) <= bound).all()
    if not name.startswith("wild"):
        assert (bound <= 3e4 * unit * (1 + np.abs(y).max(axis=0))).all()


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
    raw = {"shift": shift, "scale": scale, "output_shift": [1.0, 2.0, 3.0], "output_scale": 10}
    save_c(net, tmp_path / "f.h", "f", dtype=dtype, box=box, **raw)
    x = np.random.default_rng(0).uniform(box[:, 0], box[:, 1], (300, 5)).astype(NUMBERS[dtype])
    y = call_c("f", x, 3, tmp_path, (dtype, dtype))
    moves = [(Fraction(s), Fraction(w)) for s, w in zip(shift, scale, strict=True)]
    scaled = [[(Fraction(float(a)) - s) / w for a, (s, w) in zip(row, moves, strict=True)] for row in x]
    want = [[10 * value + i + 1 for i, value in enumerate(forward(rational(net), row))] for row in scaled]
    assert (largest_gap(y, want) <= stated(tmp_path / "f.h")).all()


def call_curve(found, name, x, folder, dtype="double"):
    """Return the results of a curve's program for x [n]."""
    save_c(found, folder / "curve.h", name, dtype=dtype)
    (folder / "curve_of.h").write_text(f"static inline void of(const {dtype} *x, {dtype} *y) {{ {name}(*x, y); }}\n")
    return call_c("of", np.asarray(x)[:, None], found.values.shape[1], folder, (dtype, dtype))


@pytest.mark.parametrize(("seed", "outputs"), [(4, 2), (12, 3)])
def test_the_program_is_the_curve(seed, outputs, tmp_path):
    net = random_network(seed, 1, 8, 3, outputs)
    found = curve(net, -3.0, 3.0)
    x = np.concatenate([np.linspace(-3, 3, 501), found.knots])
    np.testing.assert_allclose(call_curve(found, "wave", x, tmp_path), net(x[:, None]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("found", "x", "y", "count"),
    [
        (curve(LINEAR, -1.0, 1.0), [-5.0, 0.0, 7.0], [-27.0, 3.0, 45.0], "1 piece"),  # dead kinks are left out
        (STEP, [-3.0, 0.2, 0.4, 3.0], [-1, -1, 1, 1], "3 pieces"),
    ],
)
def test_one_piece_beyond_its_ends_and_a_steep_step(found, x, y, count, tmp_path):
    np.testing.assert_allclose(call_curve(found, "wave", x, tmp_path)[:, 0], y, rtol=1e-14)
    assert f" {count} on [" in (tmp_path / "curve.h").read_text()


def polyline(knots, values):
    knots, values = np.array(knots), np.array(values)[:, None]
    return Curve(knots, values, np.diff(values, axis=0) / np.diff(knots)[:, None])


CURVES = {
    "of a network": curve(random_network(0, 1, 8, 3), -3.0, 3.0),
    "of a network, far away": curve(random_network(4, 1, 8, 3), 1000.0, 1003.0),
    "knots between floats": polyline([1000, 1000.1, 1001], [0.0, 1.0, 0.3]),
    "ends between floats": polyline([0.1, 0.2, 0.7], [1.0, -3.0, 7.0]),
    "a last piece that is lost": polyline([-1.0, 1.0, 1.0 + 1e-7], [0.1, 0.2, 0.3]),
    "values that cancel": polyline([0.0, 1.0, 2.0], [1e6 + 0.1, 1e6 + 0.2, 0.1]),
    "dead kinks": polyline([0.0, 1 / 3, 2 / 3, 1.0], [0.0, 1 / 3 + 1e-15, 2 / 3, 1.0]),
}


def exact_values(found, x):
    """f(x) between the values at the knots, in rational arithmetic."""
    knots, values = ([Fraction(float(number)) for number in part] for part in (found.knots, found.values[:, 0]))
    for number, i in zip(x, found.piece(x.astype(np.float64)), strict=True):
        part = (Fraction(float(number)) - knots[i]) / (knots[i + 1] - knots[i])
        yield values[i] + part * (values[i + 1] - values[i])


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("name", CURVES)
def test_the_program_is_within_the_bound_of_the_curve(name, dtype, tmp_path):
    found = CURVES[name]
    kind = NUMBERS[dtype]
    near = found.knots.astype(kind)
    x = [np.random.default_rng(0).uniform(found.low, found.high, 2000).astype(kind), near]
    x = np.concatenate([*x, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))])
    x = x[(x.astype(np.float64) >= found.low) & (x.astype(np.float64) <= found.high)]
    y = call_curve(found, "wave", x, tmp_path, dtype)[:, 0]
    (bound,) = stated(tmp_path / "curve.h")
    pairs = zip(y, exact_values(found, x), strict=True)
    largest = max(float(abs(Fraction(float(one)) - other)) for one, other in pairs)
    assert largest <= bound
    assert bound <= max(30 * largest, 16 * np.finfo(kind).eps * np.abs(found.values).max())


def points_beyond(fixed, count, seed=0):
    """Random points in the box and beyond it, corners, NaN, infinities and a huge number."""
    low, high = fixed.box.T
    x = np.random.default_rng(seed).uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), (count, len(low)))
    special = np.array([[value] * len(low) for value in (0.0, np.nan, np.inf, -np.inf, 1e300)])
    return np.concatenate([x, corners(fixed.box), special])


@pytest.mark.parametrize(("name", "bits"), [*((name, 16) for name in FIXED), *((name, 8) for name in EDGES)])
def test_the_program_has_the_bits_of_the_simulation(name, bits, tmp_path):
    fixed = quantized(name, bits)
    save_c(fixed, tmp_path / "f.h", "f")
    x = points_beyond(fixed, 200_000 if name == "mixed 0" else 20_000)
    found = call_c("f", x, fixed.net.outputs, tmp_path, flags=SANITIZER)
    np.testing.assert_array_equal(found, fixed(x), strict=True)


@pytest.mark.parametrize(("name", "bits"), [("5 inputs", 8), ("2 inputs, relu", 8), ("1 input", 16)])
def test_layers_whose_ranges_fit_need_no_64_bits(name, bits, tmp_path):
    fixed = quantized(name, bits)
    save_c(fixed, tmp_path / "f.h", "f")
    assert ("int64_t" in (tmp_path / "f.h").read_text()) == any(layer.wide for layer in fixed.layers)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", ["mixed 0", "far box"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_integers_of_every_size(name, bits, language, tmp_path):
    fixed = quantized(name, bits)
    save_c(fixed, tmp_path / "f.h", "f")
    q = np.random.default_rng(0).integers(-(2**15), 2**15, (20_000, fixed.net.inputs))
    found = call_c("f_fixed", q, fixed.net.outputs, tmp_path, ("int16_t", "int32_t"), language, SANITIZER)
    np.testing.assert_array_equal(found, fixed.integers(q))


@pytest.mark.parametrize("name", ["mixed 0", "far box"])
def test_the_header_states_formats_and_bound(name, tmp_path):
    fixed = quantized(name, 8)
    save_c(fixed, tmp_path / "f.h", "f")
    text = (tmp_path / "f.h").read_text()
    assert all(line in text for line in fixed.formats)
    x = points_beyond(fixed, 100)[:100].clip(*fixed.box.T)
    made = re.findall(r"^   q\[(\w+)\] = round\((.*)\)", text, re.M)
    assert made
    for at, moved in made:
        for i in range(fixed.net.inputs) if at == "i" else [int(at)]:
            q = np.rint(eval(moved.replace(f"x[{at}]", "given").replace("^", ".0**"), {"given": x[:, i]}))
            np.testing.assert_array_equal(q, fixed.to_integers(x)[:, i])
    unit = float(eval(re.search(r"^   y\[\w\] = r\[\w\] \* (2\^-?\d+)", text, re.M)[1].replace("^", ".0**")))
    np.testing.assert_array_equal(unit * fixed.integers(fixed.to_integers(x)), fixed(x))
    assert error_bound(fixed)[0] <= stated(tmp_path / "f.h")[0] <= 1.01 * error_bound(fixed)[0]


@pytest.mark.parametrize("dtype", ["double", "float", "fixed"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_self_test_sees_a_changed_weight(dtype, language, tmp_path):
    path = tmp_path / "f.h"
    if dtype == "fixed":
        save_c(quantized("mixed 0"), path, "f")
    else:
        save_c(NETS["mixed 1"], path, "f", dtype=dtype, box=[(-2, 2)] * 3)

    def result():
        return subprocess.run([compile_c('#define f_SELF_TEST\n#include "f.h"\n', tmp_path, language)]).returncode

    assert result() == 0
    text = path.read_text()
    first = re.search(r"f_bias2\[2\] = \{([^,]*),", text).group(1)
    end = "f" if dtype == "float" else ""
    other = int(first) + 1 if dtype == "fixed" else f"{float(first.removesuffix(end)) + 1e-3}{end}"
    path.write_text(text.replace(f"f_bias2[2] = {{{first},", f"f_bias2[2] = {{{other},"))
    assert result() == 1


@pytest.mark.parametrize("f", [activation.hardtanh(-1e6, 0.1), activation.piecewise([3.0], [-1 / 3, 0.0], 1.0)])
def test_the_self_test_of_a_right_program_passes_where_terms_cancel(f, tmp_path):
    save_c(network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])]), tmp_path / "f.h", "f", box=[(3.5, 4.5)])
    assert subprocess.run([compile_c('#define f_SELF_TEST\n#include "f.h"\n', tmp_path)]).returncode == 0


@pytest.mark.parametrize("name", ["i", "y", "gap"])
def test_a_name_of_one_letter_has_a_self_test(name, tmp_path):
    save_c(SMALL, tmp_path / "f.h", name, box=[(-1, 1)] * 2)
    program = compile_c(f'#define {name}_SELF_TEST\n#include "f.h"\n', tmp_path)
    assert subprocess.run([program]).returncode == 0


def test_a_box_without_a_float_inside_has_one_point(tmp_path):
    save_c(NETS["no knots"], tmp_path / "f.h", "f", dtype="float", box=[(0.1, 0.1 + 1e-10)] * 2)
    assert "/* 1 point of the box" in (tmp_path / "f.h").read_text()


def test_headers_go_together(tmp_path):
    """A curve and networks in double and in fixed point, whose names differ only in case."""
    (net, box), fixed = FIXED["mixed 0"], quantized("mixed 0")
    save_c(fixed, tmp_path / "1.h", "f")
    save_c(net, tmp_path / "2.h", "F", box=box)
    assert call_curve(LINE, "ff", [0.5], tmp_path).tolist() == [[0.5]]
    x = points_beyond(fixed, 100)[:100]
    np.testing.assert_array_equal(call_c("f", x, 2, tmp_path), fixed(x))
    np.testing.assert_allclose(call_c("F", x, 2, tmp_path), net(x), rtol=1e-9, atol=1e-9)


FILES = (
    "unix",
    "linux",
    "uint8_t",
    "INT8_MAX",
    "f",
    "f_fixed",
    "f_low",
    "f_weight0",
    "f_test_x",
    "gamma",
    "isnan",
    "int",
)
"""Names of files that could not be used as the names of functions, or not all together."""


@pytest.mark.parametrize(
    ("language", "flags"), [("C", ["-std=gnu17"]), ("C", []), ("C++", ["-std=gnu++17"])], ids=["gnu17", "c99", "C++"]
)
def test_headers_named_after_their_files_go_together(language, flags, tmp_path):
    net, box = SMALL, [(-1, 1)] * 2
    names = [c_name(tmp_path / f"{name}.h") for name in FILES]
    for i, name in enumerate(names):
        save_c(quantize(net, box) if i % 2 else net, tmp_path / f"{i}.h", name, box=None if i % 2 else box)
        save_c(quantize(net, box), tmp_path / f"{i}_fixed.h", f"fixed_{name}")
    assert len(set(names)) == len(FILES)
    x = np.array([[0.25, -0.5]])
    standard = "".join(f"#include <{one}.h>\n" for one in ("math", "stdint", "stdlib", "string"))
    (tmp_path / "0_first.h").write_text(standard)
    for name in (names[0], names[-1]):
        np.testing.assert_allclose(call_c(name, x, 1, tmp_path, language=language, flags=flags), net(x), atol=1e-3)


def identifiers(*headers):
    """Return the names that a compiler's dialect and library headers define, except those that begin with _."""
    source = "".join(f"#include <{one}.h>\n" for one in headers)
    words = ["gcc", "-std=gnu17", "-E", "-dD", "-"]
    if shutil.which(words[0]) is None:
        pytest.skip("no compiler")
    text = subprocess.run(words, input=source, capture_output=True, text=True, check=True).stdout
    macros = re.findall(r"^#define ([A-Za-z]\w*)", text, re.MULTILINE)
    types = re.findall(r"^typedef .*?(\w+);$", text, re.MULTILINE)
    functions = re.findall(r"\b([A-Za-z]\w*) \(", re.sub("^#.*", "", text, flags=re.MULTILINE))
    return {name for name in (*macros, *types, *functions) if not name.startswith("_")}


def test_macros_of_the_compiler_and_names_of_integers_are_refused():
    found = identifiers("stdint")
    assert {"linux", "uint_fast8_t", "UINTMAX_C"} <= found
    assert [name for name in found if is_name(name)] == []


def test_a_file_named_like_something_of_the_library_gets_another_name(tmp_path):
    found = identifiers("stdint", "math")
    assert {"gamma", "expf", "isnan", "M_PI", "NAN"} <= found
    assert [name for name in found if c_name(tmp_path / f"{name}.h") == name] == []


@pytest.mark.parametrize("function", [LINE, NETS["mixed 0"], quantized("mixed 0")], ids=["curve", "network", "fixed"])
def test_no_header_can_have_a_name_that_another_one_defines(function, tmp_path):
    save_c(function, tmp_path / "f.h", "f", box=[(-2, 2)] * 3 if isinstance(function, Network) else None)
    text = (tmp_path / "f.h").read_text()
    found = {
        *re.findall(r"^static .*?\b(\w+)[\[(]", text, re.MULTILINE),
        *re.findall(r"^#if\w+ (\w+)", text, re.MULTILINE),
    }
    assert {"f", "PLUNIT_f_H"} < found
    assert [name for name in found if is_name(name)] == ["f"]


@pytest.mark.parametrize("name", ["f", "low", "fixed", "f_lowest", "weight0", "f_weight", "my_f", "Linux"])
def test_other_names_are_free(name, tmp_path):
    assert is_name(name)
    assert c_name(tmp_path / f"{name}.h") == name


def test_equal_activations_are_one_row(tmp_path):
    net = network([(np.ones((7, 1)), np.zeros(7)), activation.plu(), (np.ones((1, 7)), [0.0])])
    save_c(net, tmp_path / "f.h", "f")
    text = (tmp_path / "f.h").read_text()
    assert "f_knots0[1][2] = {{-1.0, 1.0}};" in text
    assert "kind" not in text


def test_nothing_else_is_used(tmp_path):
    save_c(NETS["mixed 0"], tmp_path / "f.h", "f", box=[(-2, 2)] * 3)
    assert not re.findall(r"malloc|\.h\b|#include|INFINITY|\binf\b|\bnan\b", (tmp_path / "f.h").read_text())


def test_the_header_says_where_it_comes_from(tmp_path):
    net = NETS["mixed 0"]
    save_c(net, tmp_path / "f.h", "f")
    text = describe_origin(net)
    assert text in (tmp_path / "f.h").read_text()
    assert re.fullmatch(r"plunit [\d.]+; first 32 hex digits of the numbers' SHA-256: [0-9a-f]{32}", text)
    other = Network((replace(net.layers[0], bias=net.layers[0].bias + 1e-16), *net.layers[1:]))
    assert describe_origin(other) != text


@pytest.mark.parametrize("function", [SMALL, LINE, quantize(SMALL, [(-1, 1)] * 2)], ids=lambda f: type(f).__name__)
def test_a_bound_on_rounding_is_not_taken_for_the_error_of_a_fit(function, tmp_path):
    save_c(function, tmp_path / "f.h", "f", box=[(-1, 1)] * 2 if function is SMALL else None)
    stated = (tmp_path / "f.h").read_text().partition("exact arithmetic by at most")[2]
    assert re.search("not bound .* formula", stated.partition("*/")[0])


HOSTILE = ["*/ int evil; /*", "a\nb */", "*\\", "/", "???/", "\u202eleft", "\ud800", "é", "**//"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_and_lines_of_others_stay_in_the_comment(tmp_path, language):
    path, net = tmp_path / "f.h", network([(np.ones((1, len(HOSTILE))), [0.0])])
    save_c(net, path, "f", names=HOSTILE, about="of */ x\n/* y.csv \\")
    compile_c(
        '#include "f.h"\nint main(void) { return 0; }\n', tmp_path, language, ["-Werror", "-Wcomment", f"-I{tmp_path}"]
    )
    top = path.read_text().partition("/* f: ")[0]
    assert top.isascii() or top.replace("é", "").isascii()
    assert (top.count("/*"), top.count("*/"), top.count("\n")) == (1, 1, 2 + len(HOSTILE))
    assert "x[0] = * / int evil; / *\n" in top
    assert "x[7] = é\n" in top


NAMES = ("", "1st", "a b", "x;", "int", "main", "restrict", "class", "é", "unix", "intptr_t", "f_fixed", "a_weight0")
MESSAGES = [
    *((LINE, {"name": name}, f"one that another header may define, such as f_fixed; got {name!r}") for name in NAMES),
    (LINE, {"box": [(0, 1)]}, "box is for a network, got a curve"),
    (LINE, {"scale": 2.0}, "scale is for a network, got a curve"),
    (ensemble([(np.ones((1, 2, 2)), np.zeros((1, 2)))]), {}, "an ensemble of 2"),
    (STEP, {"dtype": "float"}, "round to one number in float32; use double precision"),
    (quantized("mixed 0"), {"dtype": "float"}, "fixed point has no option dtype; use those of quantize"),
    (quantized("mixed 0"), {"box": [(0, 1)]}, "fixed point has no option box; use those of quantize"),
    (quantized("mixed 0"), {"scale": 2.0}, "fixed point has no option scale; use those of quantize"),
    (SMALL, {"box": [(-1, 1)]}, "a box of 2 inputs is 2 pairs (low, high), got 1"),
    (SMALL, {"box": (-1, 1)}, "a box of 2 inputs is 2 pairs (low, high), got (-1, 1)"),
    (SMALL, {"box": [(1, 1), (0, 1)]}, "needs finite low < high"),
    (SMALL, {"dtype": "half"}, "dtype must be one of double, float, got 'half'"),
    (SMALL, {"scale": [1, 0]}, "scale must not be 0"),
    (SMALL, {"shift": [1, 2, 3]}, "shift must be a finite number or 2 of them"),
    (SMALL, {"dtype": "float", "output_scale": 1e40}, "too large for float"),
    (network([([[1.0]], [0.0]), activation.piecewise([1e308], [0.0, 9.0])]), {}, "too large for double"),
    (SMALL, {"dtype": "float", "box": [(-1e38, 1e38)] * 2}, "in this box, which is too large for float32"),
]


@pytest.mark.parametrize(("function", "options", "text"), MESSAGES, ids=[str(row[1]) for row in MESSAGES])
def test_messages(function, options, text, tmp_path):
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        save_c(function, tmp_path / "f.h", **options)
    assert not (tmp_path / "f.h").exists()
