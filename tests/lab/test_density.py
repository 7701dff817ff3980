"""Densities: data, training and what is measured."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from plunit.lab.density.compute import gaussian, square, trained
from plunit.lab.density.data import table, train_and_test
from plunit.lab.results import Results
from torch.distributions import MultivariateNormal

from plunit.invertible import SmoothPLU, toy
from plunit.lab import density, scratch
from plunit.lab.cell import Cell

SPEC = dataclasses.replace(
    density.SPECS["density"],
    data=("moons", "pinwheel", "gaussians"),
    steps=60,
    batch=256,
    blocks=2,
    points=500,
    cells=12,
    samples=50,
)


def compute(folder, method, spec=SPEC, name="density", seeds=2):
    return density.compute(Cell(name, spec, method, 0, seeds, "torch"), folder / method)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("density")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(density.SPECS, "density", SPEC)
        yield Results({("density", method): compute(folder, method) for method in density.ACTIVATIONS})


def test_shapes(results):
    arrays = results["density", "annealed"]
    assert arrays["nll"].shape == (3, 2)
    assert arrays["loss"].shape == (3, 60, 2)
    assert arrays["log_density"].shape == (3, 12, 12, 2)
    assert arrays["sample"].shape == (3, 50, 2, 2)


def test_the_gaussian_is_the_normal_of_the_datas_moments(results):
    for d, name in enumerate(SPEC.data):
        draw, test = train_and_test(name, 1, SPEC.points)
        points = draw(100_000)
        normal = MultivariateNormal(points.mean(0), points.T.cov())
        expected = -normal.log_prob(test).mean().item()
        assert results["density", "gaussian"]["nll"][d, 1] == pytest.approx(expected, abs=1e-4)


def test_the_drawn_density_is_that_of_the_flow_and_has_mass_one(results):
    side = 2 * SPEC.half / (SPEC.cells - 1)
    mass = np.exp(results["density", "gaussian"]["log_density"]).sum((1, 2)) * side**2
    np.testing.assert_allclose(mass, 0.98, atol=0.03)
    centre = square(SPEC)[6, 2]
    assert centre[0] < 0 < centre[1]  # rows go up, columns to the right


@pytest.mark.parametrize("method", ["flux", "annealed", "smooth", "leaky"])
def test_training_lowers_the_loss(results, method):
    loss = results["density", method]["loss"]
    assert (loss[:, -5:].mean(1) < loss[:, :5].mean(1)).all()
    np.testing.assert_allclose(results["density", method]["nll"], loss[:, -5:].mean(1), atol=0.15)


def test_methods_see_the_same_data():
    ours, theirs = (train_and_test("moons", 3, 100) for _ in range(2))
    assert torch.equal(ours[0](10), theirs[0](10))
    assert torch.equal(ours[1], theirs[1])
    assert not torch.equal(ours[0](10), ours[0](10))
    assert not torch.equal(train_and_test("moons", 3, 10)[0](10), train_and_test("moons", 3, 10)[1])


def test_a_table_is_split_and_scaled_by_its_training_rows():
    draw, test = train_and_test("wine", 0, 0)
    rows = table("wine")
    assert rows.shape == (178, 13)
    assert test.shape == (35, 13)
    many = draw(20_000)
    torch.testing.assert_close(many.mean(0), torch.zeros(13), atol=0.05, rtol=0)
    torch.testing.assert_close(many.std(0), torch.ones(13), atol=0.05, rtol=0)
    assert test.mean(0).abs().max() < 1
    assert not torch.equal(test, train_and_test("wine", 1, 0)[1])
    known = {tuple(row.tolist()) for row in many.round(decimals=3)}
    assert not known & {tuple(row.tolist()) for row in test.round(decimals=3)}


def test_a_table_can_be_learned(tmp_path):
    spec = dataclasses.replace(density.SPECS["density-wine"], steps=5, batch=32, blocks=1)
    arrays = compute(tmp_path, "smooth", spec, "density-wine", 1)
    assert arrays["nll"].shape == (1, 1)
    assert math.isfinite(arrays["nll"][0, 0])
    assert "sample" not in arrays


def test_claims_rows_and_figures(results, tmp_path):
    found = density.claims(results)
    assert len(found) == 5
    assert all("60 steps" in claim.sentence for claim in found)
    assert all(claim.n == 2 for claim in found)
    plain = next(claim for claim in found if "autograd" in claim.sentence)
    assert plain.value == pytest.approx(results["density", "plain"]["nll"].mean())
    assert str(plain.claimed) == ">= 2.6"
    rows = list(density.rows(results))
    assert len(rows) == 6 * 3 * 2
    for row in rows:
        assert row["nll"] == results["density", row["activation"]]["nll"][SPEC.data.index(row["data"]), row["seed"]]
    for picture in density.figures(results):
        picture.figure.savefig(tmp_path / f"{picture.name}.png")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_run_that_is_too_short_is_held_against_a_gaussian_only(results, monkeypatch):
    monkeypatch.setitem(density.SPECS, "density", dataclasses.replace(SPEC, steps=61))
    found = density.claims(results)
    assert len(found) == 4
    assert all("better than a Gaussian, 60 steps" in claim.sentence for claim in found)
    nll, floor = (results["density", method]["nll"] for method in ("smooth", "gaussian"))
    smooth = next(claim for claim in found if "SmoothPLU" in claim.sentence)
    assert smooth.value == pytest.approx((nll - floor).mean())
    assert str(smooth.claimed) == "<= 0"


def test_the_gaussian_has_the_mean_and_covariance_of_its_points():
    x = torch.randn(5000, 2) @ torch.tensor([[2.0, 0.0], [1.5, 0.5]]) + torch.tensor([3.0, -1.0])
    normal = MultivariateNormal(x.mean(0), x.T.cov())
    torch.testing.assert_close(gaussian(x).log_prob(x), normal.log_prob(x), rtol=1e-3, atol=1e-3)


def test_annealed_flows_end_exact_and_seeds_start_apart(tmp_path):
    spec = dataclasses.replace(SPEC, steps=5)
    members = [("moons", 0), ("moons", 1)]
    flows, _ = trained(spec, "annealed", members, [lambda n: toy("moons", n)] * 2, tmp_path / "scratch")
    assert scratch.done(tmp_path / "scratch") == 1
    assert not any(isinstance(module, SmoothPLU) for flow in flows for module in flow.modules())
    first, second = (flow.bijection.parts()[0].weight for flow in flows)
    assert (first - second).abs().max() > 0.3


def test_a_seed_is_the_same_in_any_cell(results, tmp_path):
    alone = density.compute(Cell("density", SPEC, "smooth", 1, 2, "torch"), tmp_path / "smooth")
    for name in ("nll", "loss", "sample", "log_density"):
        np.testing.assert_allclose(
            alone[name][..., 0], results["density", "smooth"][name][..., 1], atol=0.05, rtol=0.01
        )
