"""The bound on the error of fixed point: never below what is observed, and not far above it."""

import itertools

import numpy as np
import pytest
from fixed_networks import NETS, corners, smooth

from plunit.pieces import activation, error_bound, network, quantize
from plunit.pieces.fixed import zonotopes
from plunit.pieces.fixed.error_bounds import sum_ranges
from plunit.pieces.fixed.integers import FixedNetwork
from plunit.pieces.fixed.zonotopes import largest_with_signs, pairs


def observed(fixed, count, seed=0):
    """Return the largest error at random points, at corners, and in ever smaller boxes around the worst ones."""
    rng = np.random.default_rng(seed)
    low, high = fixed.box.T
    x = np.concatenate([rng.uniform(low, high, (count, len(low))), corners(fixed.box)])
    error = np.abs(fixed(x) - fixed.net(x)).max(axis=1)
    for size in (1e-1, 1e-2, 1e-3):
        worst = x[np.argsort(error)[-20:]]
        near = worst[:, None] + rng.normal(size=(20, count // 100, len(low))) * size * (high - low)
        x = np.concatenate([worst, np.clip(near.reshape(-1, len(low)), low, high)])
        error = np.abs(fixed(x) - fixed.net(x)).max(axis=1)
    return error.max()


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("cuts", [0, 500])
def test_no_error_is_above_the_bound(name, bits, cuts):
    fixed = quantize(*NETS[name], bits)
    assert observed(fixed, 20_000) <= error_bound(fixed, cuts=cuts).max()


def with_errors(fixed, x, errors):
    """Return fixed(x) in real numbers, where the inputs and each layer are rounded by these errors [n, units] each."""
    q = x - fixed.offset + errors[0]
    for pair, error in zip(pairs(fixed), errors[1:], strict=True):
        z = q @ pair.fixed_weight.T + pair.fixed_bias
        q = (z if pair.fixed_f is None else pair.fixed_f(z)) + error
    return q


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", NETS)
def test_the_bound_holds_for_the_worst_signs_of_all_roundings(name, bits):
    """Also for those that no x has."""
    fixed = quantize(*NETS[name], bits)
    halves = [2.0**-fixed.fraction / 2, *(np.full(len(pair.bias), pair.rounding) for pair in pairs(fixed))]
    x = np.random.default_rng(0).uniform(*fixed.box.T, (200, len(fixed.box)))
    none, bound = [np.zeros((200, len(half))) for half in halves], error_bound(fixed, cuts=300)
    for output in range(fixed.net.outputs):
        signs = [zero.copy() for zero in none]
        for layer, unit in ((layer, unit) for layer, half in enumerate(halves) for unit in range(len(half))):
            ends = [[e.copy() for e in none] for _ in range(2)]
            ends[0][layer][:, unit], ends[1][layer][:, unit] = halves[layer][unit], -halves[layer][unit]
            up, down = (with_errors(fixed, x, end)[:, output] for end in ends)
            signs[layer][:, unit] = np.sign(up - down)
        for sign in (1, -1):
            worst = with_errors(fixed, x, [sign * s * half for s, half in zip(signs, halves, strict=True)])
            assert np.abs(worst - fixed.net(x))[:, output].max() <= bound[output]


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("f", [activation.plu(), activation.relu()], ids=["plu", "relu"])
def test_the_bound_is_at_most_three_times_the_error_in_the_median(bits, f):
    ratios = []
    for seed, inputs in enumerate([1, 2, 3, 4, 5]):
        fixed = quantize(smooth(seed, inputs, f=f), [(-2, 2)] * inputs, bits)
        x = np.random.default_rng(seed).uniform(-2, 2, (50_000, inputs))
        ratios.append(error_bound(fixed)[0] / np.abs(fixed(x) - fixed.net(x)).max())
    assert min(ratios) >= 1
    assert np.median(ratios) <= 3


@pytest.mark.parametrize("part", [0.0, 0.9, 1.1], ids=["no floor", "floor below", "floor above"])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
def test_the_largest_sum_with_any_signs(compiled, part, monkeypatch):
    """Against all 2^7 signs; a case without rows, and one whose rows are 0, as well."""
    if not compiled:
        monkeypatch.setattr(zonotopes, "why_not_native", lambda program: "no compiler")
    rng = np.random.default_rng(0)
    base, rows = rng.normal(size=(30, 12)), rng.normal(size=(30, 7, 12)) * rng.uniform(0, 3, (30, 7, 1))
    rows[0] = 0
    signs = np.array(list(itertools.product((-1, 1), repeat=7)))
    exact = np.abs(base[:, None] + np.einsum("pu,bus->bps", signs, rows)).sum(axis=2).max(axis=1)
    found = largest_with_signs(base, rows, part * exact)
    assert (found >= exact).all()
    np.testing.assert_allclose(found, np.maximum(1, part) * exact, rtol=1e-10)
    np.testing.assert_allclose(largest_with_signs(base, rows[:, :0], np.zeros(30)), np.abs(base).sum(axis=1))


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
def test_many_signs_are_bounded_without_trying_them_all(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(zonotopes, "why_not_native", lambda program: "no compiler")
    base, rows = np.random.default_rng(1).normal(size=(2, 8)), np.random.default_rng(2).normal(size=(2, 40, 8))
    signs = np.sign(np.random.default_rng(3).normal(size=(10_000, 40)))
    seen = np.abs(base[:, None] + np.einsum("pu,bus->bps", signs, rows)).sum(axis=2).max(axis=1)
    found = largest_with_signs(base, rows, np.zeros(2))
    assert (found >= seen).all()
    assert (found < np.abs(base).sum(axis=1) + np.abs(rows).sum(axis=(1, 2))).all()


def test_the_rounding_of_an_input_is_half_a_unit():
    fixed = quantize(network([([[1.0]], [0.0])]), [(-2, 2)])
    assert fixed.fraction[0] == 13
    np.testing.assert_allclose(error_bound(fixed), [2.0**-14], rtol=1e-9)


def test_a_known_error_of_a_weight():
    """f(x) = x / 3 with 8 bits on [0, 3]: the weight 1/3 becomes 85/256; the offset is in the bias, which is exact."""
    fixed = quantize(network([([[1 / 3]], [0.0])]), [(0, 3)], 8)
    unit = 2.0 ** -int(fixed.fraction[0])
    weight = fixed.layers[0].weight[0, 0] * 2.0 ** -int(fixed.layers[0].weight_fraction) / unit
    assert abs(weight - 1 / 3) > 1e-3
    expected = 1.5 * abs(weight - 1 / 3) + abs(weight) * unit / 2
    np.testing.assert_allclose(error_bound(fixed), [expected], rtol=1e-3)


@pytest.mark.parametrize("name", ["5 inputs", "mixed 0"])
def test_cuts_make_the_bound_smaller(name):
    fixed = quantize(*NETS[name])
    bounds = [error_bound(fixed, cuts=cuts) for cuts in (0, 100, 1000)]
    assert (bounds[1] < 0.95 * bounds[0]).all()
    assert (bounds[2] <= bounds[1]).all()


@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("name", ["5 inputs", "mixed 0", "mixed 1", "far box"])
def test_ranges_hold_all_sums(name, bits):
    fixed = quantize(*NETS[name], bits)
    first, second = fixed.layers[:2]
    before = FixedNetwork(fixed.net, fixed.box, bits, fixed.offset, fixed.fraction, (first,))
    x = np.random.default_rng(0).uniform(*fixed.box.T, (50_000, len(fixed.box)))
    weight, bias = second.weight * 2.0**-second.weight_fraction, second.bias * 2.0**-second.sum_fraction
    total = (first(fixed.to_integers(x)) * 2.0**-first.fraction) @ weight.T + bias
    low, high = sum_ranges(before, weight, bias)
    assert (low <= total.min(axis=0)).all()
    assert (high >= total.max(axis=0)).all()
    assert (high - low <= 4 * np.ptp(total, axis=0) + 1e-3).all()
