import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    ALPHAS_AND_CS,
    exact,
    paper,
    points,
)

import plunit

finite = st.floats(-1e6, 1e6)
FUNCTIONS = plunit.plu, plunit.inverse, plunit.slope, plunit.log_slope


@pytest.mark.parametrize(("alpha", "c"), ALPHAS_AND_CS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plu_is_the_rational_value_to_rounding(alpha, c, dtype):
    x = points(c, dtype)
    alpha, c = dtype(alpha), dtype(c)
    expected = np.array([exact(value, alpha, c) for value in x], dtype)
    assert plunit.plu(x, alpha, c).dtype == dtype
    np.testing.assert_allclose(plunit.plu(x, alpha, c), expected, rtol=4 * np.finfo(dtype).eps)


def test_erratum_max_min_form_collapses_for_alpha_above_one():
    x = np.linspace(-5, 5, 101)
    upper_line = 3.0 * (x + 1) - 1
    np.testing.assert_allclose(paper(x, 3.0, 1.0)[x > -1], upper_line[x > -1])
    assert plunit.plu(0.5, 3.0) == 0.5


@given(finite, st.floats(1e-3, 10), st.floats(0, 100))
def test_plu_is_odd_and_the_identity_inside(x, alpha, c):
    assert plunit.plu(-x, alpha, c) == -plunit.plu(x, alpha, c)
    if abs(x) <= c:
        assert plunit.plu(x, alpha, c) == x


@given(finite, st.floats(1e-3, 10), st.floats(0, 100))
def test_inverse_undoes_plu(x, alpha, c):
    y = plunit.plu(x, alpha, c)
    assert plunit.inverse(y, alpha, c) == pytest.approx(x, rel=1e-12, abs=1e-12 * max(1, c) / alpha)


@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.5, 0.3), (1.0, 2.0)])
def test_erratum_inverse_of_the_paper_with_its_lost_argument_restored(alpha, c):
    y = np.linspace(-4, 4, 401)
    restored = np.minimum((y + c) / alpha - c, np.maximum((y - c) / alpha + c, y))
    np.testing.assert_allclose(plunit.inverse(y, alpha, c), restored, atol=1e-12)


@pytest.mark.parametrize(("alpha", "c"), ALPHAS_AND_CS)
def test_slope_is_the_finite_difference(alpha, c):
    x, h = np.random.default_rng(1).normal(scale=2, size=200), 1e-6
    x = x[np.abs(np.abs(x) - c) > 2 * h]
    difference = (plunit.plu(x + h, alpha, c) - plunit.plu(x - h, alpha, c)) / (2 * h)
    np.testing.assert_allclose(plunit.slope(x, alpha, c), difference, atol=1e-8)


def test_log_slope():
    np.testing.assert_allclose(plunit.log_slope([-2, 0.5, 1, 2], 0.25), [math.log(0.25), 0, 0, math.log(0.25)])
    assert plunit.log_slope(2.0, 0.0) == -math.inf


@pytest.mark.parametrize("x", [3, 3.0, np.float64(3), np.int32(3), np.array(3), True + 2])
def test_numbers_give_numbers(x):
    assert plunit.plu(x) == pytest.approx(1.2)
    assert np.ndim(plunit.plu(x)) == 0
    assert type(plunit.plu(x)) is (float if type(x) in (int, float) else np.float64)


def test_non_contiguous_and_broadcast_parameters():
    x = np.random.default_rng(2).normal(scale=2, size=(4, 6))[::2, ::-1]
    alpha, c = np.array([[0.1], [0.3]]), np.linspace(0.2, 2, 6)
    expected = [[exact(x[i, j], alpha[i, 0], c[j]) for j in range(6)] for i in range(2)]
    np.testing.assert_allclose(plunit.plu(x, alpha, c), expected)


@pytest.mark.parametrize("alpha", [1e-39, 1e38, 1.2e-38])
def test_inverse_of_slopes_that_the_precision_has(alpha):
    y = np.array([0.5, 3.0], np.float32 if alpha == 1.2e-38 else np.float64)
    np.testing.assert_allclose(plunit.inverse(y, alpha), [0.5, 1 + 2 / alpha])


REFUSED = [
    (lambda: plunit.plu(1.0, [-1.0]), ValueError, "alpha must be finite"),
    *(
        (lambda a=a: plunit.plu(1.0, a), TypeError, "alpha must be a real number or an array")
        for a in (None, 1j, "0.1")
    ),
    *((lambda x=x: plunit.plu(x), TypeError, "real numbers") for x in (1j, np.array([1 + 2j]), "three", None)),
    (lambda: plunit.inverse(np.ones(2), 1e-310), ValueError, "alpha > 0"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_messages(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["plunit", "plunit.numpy", "plunit.torch", "plunit.jax"])
def test_public_names_are_complete_and_sorted(name):
    module = pytest.importorskip(name)
    assert module.__all__ == sorted(module.__all__)
    assert {"plu", "inverse", "slope", "log_slope"} <= set(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_torch_compiles_the_root_functions_without_a_graph_break(function):
    torch = pytest.importorskip("torch")
    x = torch.linspace(-3, 3, 7)
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), function(x))


def test_torch_exports_the_root_function():
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def forward(self, x):
            return plunit.plu(x)

    x = torch.linspace(-3, 3, 7)
    torch.testing.assert_close(torch.export.export(Model(), (x,), strict=True).module()(x), plunit.plu(x))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_masks_are_kept(function):
    x = np.ma.array([3.0, 0.5, np.nan, -3.0], mask=[True, False, True, False])
    result = function(x, 0.5, 1.0)
    assert isinstance(result, np.ma.MaskedArray)
    assert result.mask.tolist() == [True, False, True, False]
    np.testing.assert_array_equal(result.compressed(), function(x.compressed(), 0.5, 1.0))
    without = np.ma.array([3.0, 0.5])
    np.testing.assert_array_equal(function(without).data, function(without.data))
    assert not function(without).mask.any()
    assert function(np.ma.masked_equal([[3, 4], [5, 6]], 4)).mask.tolist() == [[False, True], [False, False]]


def test_masks_of_alpha_and_c_are_joined():
    alpha, c = np.ma.array([[0.5], [0.25]], mask=[[True], [False]]), np.ma.array([1.0, 2.0, 4.0], mask=[0, 1, 0])
    result = plunit.plu(np.array([5.0, 5.0, 5.0]), alpha, c)
    assert result.mask.tolist() == [[True, True, True], [False, True, False]]
    assert result.compressed().tolist() == [2.0, 4.25]
