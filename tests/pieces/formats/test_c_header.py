import re
import shutil
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from compilers import call_c
from random_networks import random_network

from plunit.pieces import Curve, activation, curve, network, quantize, save_c

PROGRAM = """
#include <stdio.h>
{includes}
int main(void) {{
    double x, y[8];
    while (scanf("%lf", &x) == 1) {{
        {name}(x, y);
        for (int i = 0; i < {outputs}; i++) printf("%.17g\\n", y[i]);
    }}
    return 0;
}}
"""


def run(name, outputs, x, folder, flags=("-std=c99",)):
    """Compile a program that includes all headers of the folder, and return what `name` gives for x."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: cc is not on the path")
    includes = "\n".join(f'#include "{path.name}"' for path in sorted(folder.glob("*.h")))
    (folder / "main.c").write_text(PROGRAM.format(includes=includes, name=name, outputs=outputs))
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([compiler, *flags, *warnings, "main.c", "-o", "main"], cwd=folder, check=True)
    text = "\n".join(repr(float(number)) for number in x)
    done = subprocess.run([folder / "main"], input=text, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), dtype=float).reshape(len(x), outputs)


@pytest.mark.parametrize(("seed", "outputs"), [(0, 1), (4, 2), (12, 3), (1, 1)])
def test_the_program_is_the_network(seed, outputs, tmp_path):
    net = random_network(seed, 1, 8, 3, outputs)
    found = curve(net, -3.0, 3.0)
    save_c(found, tmp_path / "wave.h", "wave")
    x = np.concatenate([np.linspace(-3, 3, 501), found.knots])
    np.testing.assert_allclose(run("wave", outputs, x, tmp_path), net(x[:, None]), rtol=1e-12, atol=1e-12)


def test_one_piece_and_beyond_the_ends(tmp_path):
    net = network([([[2.0]], [1.0]), activation.plu(1.0), ([[3.0]], [0.0])])
    save_c(curve(net, -1.0, 1.0), tmp_path / "wave.h", "wave")
    np.testing.assert_allclose(run("wave", 1, [-5.0, 0.0, 7.0], tmp_path)[:, 0], [-27.0, 3.0, 45.0], rtol=1e-14)


@pytest.mark.parametrize("weight", [1e8, 1e13])
def test_a_steep_step_stays(weight, tmp_path):
    net = network([([[weight]], [-0.3 * weight]), activation.hardtanh(), ([[1.0]], [0.0])])
    save_c(curve(net, -3.0, 3.0), tmp_path / "step.h", "step")
    assert run("step", 1, [-3.0, 0.2, 0.4, 3.0], tmp_path).ravel().tolist() == [-1, -1, 1, 1]


def test_dead_kinks_are_left_out(tmp_path):
    save_c(curve(network([([[1.0]], [0.0]), activation.plu(1.0)]), -2.0, 2.0), tmp_path / "f.h")
    assert "1 pieces" in (tmp_path / "f.h").read_text()


@pytest.mark.parametrize("name", ["f", "F"])
def test_names_that_differ_in_case_go_together(name, tmp_path):
    for sign, each in ((1.0, "f"), (-1.0, "F")):
        save_c(Curve([0, 1], [[0], [sign]], [[sign]]), tmp_path / f"{ord(each)}.h", each)
    assert run(name, 1, [0.5], tmp_path).tolist() == [[0.5 if name == "f" else -0.5]]


@pytest.mark.parametrize("name", ["", "1st", "a b", "x;", "int", "for", "main", "restrict", "class", "é"])
def test_the_name_must_be_an_identifier(name, tmp_path):
    with pytest.raises(ValueError, match="C identifier and not a keyword"):
        save_c(curve(random_network(0, 1, 3, 1), -1.0, 1.0), tmp_path / "f.h", name)
    assert not (tmp_path / "f.h").exists()


def test_a_curve_in_float(tmp_path):
    found = curve(random_network(0, 1, 8, 3), -3.0, 3.0)
    save_c(found, tmp_path / "wave.h", "wave", dtype="float")
    x = np.linspace(-3, 3, 501).astype(np.float32)[:, None]
    (tmp_path / "wave_of.h").write_text("static inline void of(const float *x, float *y) { wave(*x, y); }\n")
    y = call_c("of", x, 1, tmp_path, ("float", "float"))
    np.testing.assert_allclose(y, found(x[:, 0].astype(float)), atol=1e-5 * np.abs(found.values).max())


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
    save_c(found, tmp_path / "wave.h", "wave", dtype=dtype)
    bound = float(re.search(r"exact arithmetic by at most (\S+)\n", (tmp_path / "wave.h").read_text())[1])
    kind = {"double": np.float64, "float": np.float32}[dtype]
    near = found.knots.astype(kind)
    x = [np.random.default_rng(0).uniform(found.low, found.high, 2000).astype(kind), near]
    x = np.concatenate([*x, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))])
    x = x[(x.astype(np.float64) >= found.low) & (x.astype(np.float64) <= found.high)]
    (tmp_path / "wave_of.h").write_text(f"static inline void of(const {dtype} *x, {dtype} *y) {{ wave(*x, y); }}\n")
    y = call_c("of", x[:, None], 1, tmp_path, (dtype, dtype))[:, 0]
    pairs = zip(y, exact_values(found, x), strict=True)
    largest = max(float(abs(Fraction(float(one)) - other)) for one, other in pairs)
    assert largest <= bound
    assert bound <= max(30 * largest, 16 * np.finfo(kind).eps * np.abs(found.values).max())


NET = network([([[1.0, 2.0]], [0.0]), activation.plu(), ([[1.0]], [0.0])])


@pytest.mark.parametrize(
    "function", [NET, CURVES["dead kinks"], quantize(NET, [(-1, 1)] * 2)], ids=lambda f: type(f).__name__
)
def test_a_bound_on_rounding_is_not_taken_for_the_error_of_a_fit(function, tmp_path):
    save_c(function, tmp_path / "f.h", "f", box=[(-1, 1)] * 2 if function is NET else None)
    stated = (tmp_path / "f.h").read_text().partition("exact arithmetic by at most")[2]
    assert re.search("not bound .* formula", stated.partition("*/")[0])


def test_a_comment_cannot_be_left(tmp_path):
    save_c(Curve([0, 1], [[0], [1]], [[1]]), tmp_path / "f.h", "f", about="a */ b\n/* c")
    assert (tmp_path / "f.h").read_text().startswith("/* a * / b /* c */\n/* f: ")


def test_pieces_too_short_for_float_are_refused(tmp_path):
    net = network([([[1e13]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])])
    with pytest.raises(ValueError, match="too short for float; take dtype='double'"):
        save_c(curve(net, -3.0, 3.0), tmp_path / "f.h", dtype="float")


@pytest.mark.parametrize("options", [{"box": [(0, 1)]}, {"scale": 2.0}])
def test_a_curve_takes_no_options_of_networks(options, tmp_path):
    with pytest.raises(ValueError, match=f"a curve takes no {next(iter(options))}"):
        save_c(Curve([0, 1], [[0], [1]], [[1]]), tmp_path / "f.h", **options)
