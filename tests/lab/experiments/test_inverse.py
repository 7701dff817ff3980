"""Round trips through invertible networks."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from plunit.invertible import PLU, Chain, Frozen, InvertibleNetwork, Tanh, alternating
from plunit.lab.cell import Cell
from plunit.lab.read.inverse import EXPERIMENTS
from plunit.lab.train.inverse import NETWORKS, compute, round_trips

(USUAL,) = EXPERIMENTS
SPEC = dataclasses.replace(USUAL.spec, depths=(1, 4), points=16, features=3)
INVERSE = dataclasses.replace(USUAL, spec=SPEC)


@pytest.fixture(scope="module")
def runs():
    cells = [Cell("inverse", SPEC, activation, 3, 5, "", "") for activation in USUAL.activations]
    return {cell.activation: compute(cell, Path()) for cell in cells}


@pytest.mark.parametrize("activation", USUAL.activations)
def test_a_cell_has_the_round_trips_of_its_seeds(activation, runs):
    arrays = runs[activation]
    assert arrays["seed"].tolist() == [3, 4]
    for i, linear in enumerate(SPEC.linears):
        for j, dtype in enumerate(SPEC.dtypes):
            for k, seed in enumerate((3, 4)):
                found = [arrays[key][i, j, :, k] for key in ("error", "lost")]
                np.testing.assert_array_equal(found, round_trips(SPEC, activation, linear, dtype, seed))


@pytest.mark.parametrize("linear", ["lu", "orthogonal"])
def test_round_trips_are_those_of_the_network(linear):
    worst, lost = round_trips(SPEC, "plu", linear, "float64", 0)
    assert ((lost == 0) & (worst > 0) & (worst < 1e-12)).all()
    single, _ = round_trips(SPEC, "plu", linear, "float32", 0)
    assert ((single > 1e6 * worst) & (single < 1e-4)).all()


def test_a_depth_is_the_beginning_of_a_deeper_one():
    generator = torch.Generator().manual_seed(0)
    network = InvertibleNetwork(3, 4, activation=alternating(PLU, SPEC.alpha), generator=generator).double()
    x = torch.randn(SPEC.points, 3, generator=generator).double()
    parts = [Frozen(part) for part in network.bijection.parts()]
    chains = (Chain(*parts[:3]), Chain(*parts))
    errors = [(chain.inverse(chain(x)[0])[0] - x).norm(dim=-1).max() for chain in chains]
    assert round_trips(SPEC, "plu", "lu", "float64", 0)[0].tolist() == errors


def test_tanh_loses_digits_far_out_and_points_where_it_rounds_to_one():
    wide = dataclasses.replace(SPEC, depths=(1,), features=1, points=100_000)  # some beyond 4.5 = artanh(1 - 2^-13)
    worst, lost = round_trips(wide, "tanh", "lu", "float32", 0)
    assert 1e-6 < worst < 0.1
    assert lost == 0
    deep = dataclasses.replace(SPEC, depths=(1, 256), features=16, points=32)
    worst, lost = round_trips(deep, "tanh", "orthogonal", "float32", 0)
    assert np.isfinite(worst).tolist() == [True, False]
    assert lost[0] == 0 < lost[1] < 1


def drawn(shift):
    """Arrays of no network at all, each number another one."""
    shape, rng = (2, 2, 2, 7), np.random.default_rng(shift)
    trips = {key: rng.lognormal(size=shape) for key in ("error", "lost")}
    return {"seed": np.arange(7), **trips}


DRAWN = {name: drawn(shift) for shift, name in enumerate(("tanh", "plu", "leaky_relu"))}


def statistics(experiment, runs):
    return {one.name: one for one in experiment.statistics(runs)}


def test_statistics_are_about_the_arrays_they_name():
    trips = {f"round trip {name}": np.sort(one["error"][:, 0, 1].max(0))[3] for name, one in DRAWN.items()}
    found = statistics(INVERSE, DRAWN)
    assert {name: one.estimate.value for name, one in found.items()} == pytest.approx(trips)
    assert "of PLU, depth 4, 3 features, the worse of orthogonal and lu, float32" in found["round trip plu"].words


@pytest.mark.parametrize("changes", [{"depths": (32, 64)}, {"depths": (32, 64), "dtypes": ("float64",)}])
def test_round_trips_are_measured_at_depth_32_if_it_is_there(changes):
    deep = dataclasses.replace(USUAL, spec=dataclasses.replace(SPEC, **changes))
    found = statistics(deep, {"plu": DRAWN["plu"]})["round trip plu"]
    assert "depth 32" in found.words
    assert found.estimate.value == pytest.approx(np.sort(DRAWN["plu"]["error"][:, 0, 0].max(0))[3])


def test_the_figure_has_a_panel_for_each_kind_and_precision(tmp_path):
    (picture,) = INVERSE.figures({"plu": DRAWN["plu"]})
    picture.figure.savefig(tmp_path / "figure.png")
    for panel, axes in enumerate(picture.figure.axes):
        dtype, linear = divmod(panel, 2)
        assert axes.get_title() == f"{('orthogonal', 'LU')[linear]} layers, {SPEC.dtypes[dtype]}"
        expected = [np.sort(DRAWN["plu"]["error"][linear, dtype])[:, 3]]
        np.testing.assert_allclose([line.get_ydata() for line in axes.lines], expected)


@pytest.mark.parametrize("back", [np.nan, np.inf])
def test_points_that_come_back_as_no_number_are_lost(back, monkeypatch):
    class Broken(Tanh):
        @staticmethod
        def invert(y, *values):
            return torch.full_like(y, back), y

    monkeypatch.setitem(NETWORKS, "tanh", lambda alpha: lambda features, index: Broken(features))
    spec = dataclasses.replace(SPEC, features=1, depths=(1,))
    worst, lost = round_trips(spec, "tanh", "lu", "float32", 0)
    assert (worst, lost) == (np.inf, 1)
