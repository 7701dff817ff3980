"""Which values an activation takes, and round trips."""

import dataclasses

import numpy as np
import pytest
import torch
from plunit.lab.inverse.compute import FUNCTIONS, NETWORKS, is_reached, round_trips
from plunit.lab.results import Results

from plunit.invertible import PLU, Chain, InvertibleNetwork, Tanh, alternating
from plunit.invertible.certificate import certify
from plunit.invertible.frozen import part_by_part
from plunit.lab import inverse
from plunit.lab.cell import Cell

SPEC = dataclasses.replace(inverse.SPECS["inverse"], depths=(1, 4), points=16, features=3, values=256)


def arrays(activation, seeds=5):
    return inverse.compute(Cell("inverse", SPEC, activation, 0, seeds, "torch"))


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(inverse.SPECS, "inverse", SPEC)
        yield Results({("inverse", activation): arrays(activation) for activation in inverse.ACTIVATIONS})


@pytest.mark.parametrize(
    ("activation", "reached"),
    [
        ("plu", [True, True, True, True, True]),
        ("leaky_relu", [True, True, True, True, True]),
        ("relu", [False, False, True, True, True]),
        ("tanh", [False, True, True, True, False]),
    ],
)
def test_values_an_activation_takes(activation, reached):
    y = torch.tensor([-2.5, -0.5, 0.0, 0.5, 2.5], dtype=torch.float64)
    assert is_reached(FUNCTIONS[activation], y).tolist() == reached


@pytest.mark.parametrize("linear", ["lu", "orthogonal"])
def test_round_trips_are_those_of_the_network(linear):
    worst, lost, bound = round_trips(SPEC, "plu", linear, "float64", 0)
    assert ((worst > 0) & (worst < 1e-12)).all()
    assert (lost == 0).all()
    assert (bound < 1e-12).all()
    assert (bound >= worst).all()
    single, _, looser = round_trips(SPEC, "plu", linear, "float32", 0)
    assert ((single > 1e6 * worst) & (single < 1e-4)).all()
    assert (looser > 1e6 * bound).all()


def test_a_depth_is_the_beginning_of_a_deeper_one():
    generator = torch.Generator().manual_seed(0)
    network = InvertibleNetwork(3, 4, activation=alternating(PLU, SPEC.alpha), generator=generator).double()
    x = torch.randn(SPEC.points, 3, generator=generator).double()
    worst, _, bound = round_trips(SPEC, "plu", "lu", "float64", 0)
    assert bound[1] == network.certificate(x).round_trip_error
    whole = part_by_part(network.bijection)
    first = Chain(*whole.parts()[:3])
    for chain, error in ((first, worst[0]), (whole, worst[1])):
        assert error == (chain.inverse(chain(x)[0])[0] - x).norm(dim=-1).max()
    assert bound[0] == certify(first, x).round_trip_error


def test_tanh_loses_digits_far_out():
    wide = dataclasses.replace(SPEC, depths=(1,), features=1, points=100_000)  # some beyond 4.5 = artanh(1 - 2^-13)
    worst, lost, bound = round_trips(wide, "tanh", "lu", "float32", 0)
    assert 1e-6 < worst < 0.1
    assert lost == 0
    assert np.isnan(bound)


def test_tanh_loses_points_where_it_rounds_to_one():
    deep = dataclasses.replace(SPEC, depths=(1, 256), features=16, points=32)
    worst, lost, _ = round_trips(deep, "tanh", "orthogonal", "float32", 0)
    assert np.isfinite(worst[0])
    assert lost[0] == 0
    assert worst[1] == np.inf
    assert 0 < lost[1] < 1


def test_relu_has_no_round_trip():
    assert np.isnan(round_trips(SPEC, "relu", "lu", "float32", 0)).all()


def test_claims_by_numbers(results):
    found = {claim.sentence: claim for claim in inverse.claims(results)}
    assert found["PLU's inverse is defined on the whole domain."].verdict == "holds"
    relu = found["ReLU is not an invertible function."]
    assert relu.verdict == "holds"
    assert 0.4 < relu.value < 0.6
    assert found["tanh's inverse is defined on (-1, 1) only: nowhere outside."].value == 0
    assert found["tanh's inverse is defined on (-1, 1) only: everywhere inside."].value == 1
    assert found["PLU is one to one."].value == 0


def test_a_value_that_is_missed_is_seen(results):
    broken = dict(results["inverse", "plu"], reached=np.array([np.full(5, 0.99), np.ones(5)]))
    found = inverse.claims(Results({("inverse", "plu"): broken}))
    assert found[0].verdict == "does not hold"


def test_rows_and_figure(results, tmp_path):
    rows = list(inverse.rows(results))
    assert len(rows) == 4 * 2 * 2 * 2 * 5
    (picture,) = inverse.figures(results)
    assert len(picture.figure.axes) == 4
    picture.figure.savefig(tmp_path / "figure.png")


def test_at_most_five_seeds_are_run():
    assert len(inverse.cells("inverse", ("plu",), 1024, "native")) == 5


def test_rows_hold_what_was_measured(results):
    found = results["inverse", "plu"]
    for row in inverse.rows(results):
        if row["activation"] == "plu":
            names = (SPEC.linears, row["linear"]), (SPEC.dtypes, row["dtype"]), (SPEC.depths, row["depth"])
            place = (*(values.index(value) for values, value in names), row["seed"])
            assert (row["error"], row["bound"]) == (found["error"][place], found["bound"][place])


def test_claims_are_about_the_arrays_they_name(results):
    plu = results["inverse", "plu"]
    found = {claim.sentence: claim.value for claim in inverse.claims(results)}
    trip = found["An invertible PLU network of depth 4 returns its input in float32."]
    assert trip == pytest.approx(np.median(plu["error"][:, 0, 1].max(0)))
    bound = found["The bound of the certificate is not exceeded at any depth, PLU."]
    assert bound == pytest.approx((plu["error"] / plu["bound"]).max())
    assert bound < 1


def test_panels_are_those_of_their_titles(results):
    (picture,) = inverse.figures(Results({("inverse", "plu"): results["inverse", "plu"]}))
    axes = picture.figure.axes[1]
    assert axes.get_title() == "LU layers, float32"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.median(results["inverse", "plu"]["error"][1, 0], -1))


@pytest.mark.parametrize("back", [np.nan, np.inf])
def test_points_that_come_back_as_no_number_are_lost(back, monkeypatch):
    class Broken(Tanh):
        @staticmethod
        def invert(y, *values):
            return torch.full_like(y, back), y

    monkeypatch.setitem(NETWORKS, "tanh", lambda alpha: lambda features, index: Broken(features))
    spec = dataclasses.replace(SPEC, features=1, depths=(1,))
    worst, lost, _ = round_trips(spec, "tanh", "lu", "float32", 0)
    assert (worst, lost) == (np.inf, 1)
