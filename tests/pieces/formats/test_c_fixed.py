"""A network in fixed point as C: the same bits as the simulation."""

import re
import subprocess
from functools import cache

import numpy as np
import pytest
from compilers import LANGUAGES, SANITIZER, call_c, compile_c
from fixed_networks import NETS, corners

from plunit.pieces import error_bound, network, quantize, save_c

SOME = ["5 inputs", "mixed 0", "far box", "one affine layer"]


@cache
def quantized(name, bits):
    net, box = NETS[name]
    return quantize(net, box, bits)


def points(fixed, count, seed=0):
    """Random points in the box and beyond it, corners, NaN, infinities and a huge number."""
    low, high = fixed.box.T
    x = np.random.default_rng(seed).uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), (count, len(low)))
    special = np.array([[value] * len(low) for value in (0.0, np.nan, np.inf, -np.inf, 1e300)])
    return np.concatenate([x, corners(fixed.box), special])


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
def test_the_program_has_the_bits_of_the_simulation(name, bits, tmp_path):
    fixed = quantized(name, bits)
    save_c(fixed, tmp_path / "f.h", "f")
    x = points(fixed, 20_000)
    found = call_c("f", x, fixed.net.outputs, tmp_path, flags=SANITIZER)
    np.testing.assert_array_equal(found, fixed(x), strict=True)


@pytest.mark.parametrize("bits", [16, 8])
def test_a_million_inputs_have_the_bits_of_the_simulation(bits, tmp_path):
    fixed = quantized("5 inputs", bits)
    save_c(fixed, tmp_path / "f.h", "f")
    x = points(fixed, 10**6)
    np.testing.assert_array_equal(call_c("f", x, 1, tmp_path, flags=("-O2",)), fixed(x), strict=True)


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("language", LANGUAGES)
def test_integers_of_every_size(name, bits, language, tmp_path):
    fixed = quantized(name, bits)
    save_c(fixed, tmp_path / "f.h", "f")
    q = np.random.default_rng(0).integers(-(2**15), 2**15, (20_000, fixed.net.inputs))
    found = call_c("f_fixed", q, fixed.net.outputs, tmp_path, ("int16_t", "int32_t"), language, SANITIZER)
    np.testing.assert_array_equal(found, fixed.integers(q))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_self_test_sees_a_changed_weight(language, tmp_path):
    save_c(quantized("mixed 0", 16), tmp_path / "f.h", "f")
    program = compile_c('#define f_SELF_TEST\n#include "f.h"\n', tmp_path, language)
    assert subprocess.run([program]).returncode == 0
    text = (tmp_path / "f.h").read_text()
    changed = re.sub(r"(f_bias2\[2\] = \{)(-?\d+)", lambda found: f"{found[1]}{int(found[2]) + 1}", text)
    assert changed != text
    (tmp_path / "f.h").write_text(changed)
    program = compile_c('#define f_SELF_TEST\n#include "f.h"\n', tmp_path, language)
    assert subprocess.run([program]).returncode == 1


def test_fixed_and_double_headers_go_together(tmp_path):
    net, box = NETS["mixed 0"]
    fixed = quantized("mixed 0", 16)
    save_c(fixed, tmp_path / "1.h", "small")
    save_c(net, tmp_path / "2.h", "large", box=box)
    x = points(fixed, 100)[:100]
    np.testing.assert_array_equal(call_c("small", x, 2, tmp_path), fixed(x))
    np.testing.assert_allclose(call_c("large", x, 2, tmp_path), net(x), rtol=1e-9, atol=1e-9)


def test_the_header_states_formats_and_bound(tmp_path):
    fixed = quantized("5 inputs", 8)
    save_c(fixed, tmp_path / "f.h", "f")
    text = (tmp_path / "f.h").read_text()
    assert all(line in text for line in fixed.formats)
    stated = float(re.search(r"exact arithmetic by at most ([^\n]*)", text).group(1))
    assert error_bound(fixed)[0] <= stated <= 1.01 * error_bound(fixed)[0]


@pytest.mark.parametrize("options", [{"dtype": "float"}, {"box": [(0, 1)]}, {"scale": 2.0}])
def test_options_belong_to_quantize(options, tmp_path):
    fixed = quantize(network([([[1.0]], [0.0])]), [(0, 1)])
    with pytest.raises(ValueError, match=f"fixed point takes no {next(iter(options))}; quantize"):
        save_c(fixed, tmp_path / "f.h", "f", **options)
    assert not (tmp_path / "f.h").exists()
