"""Densities: data, training and what is measured."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from plunit.lab.cell import Cell
from plunit.lab.read.density import EXPERIMENTS, METHODS
from plunit.lab.train import density as run
from plunit.lab.train.density import gaussian, square, table, train_and_test

DENSITIES = {one.name: one for one in EXPERIMENTS}
TOYS = DENSITIES["density"]
SMALL = {"steps": 60, "batch": 256, "blocks": 2, "points": 500, "cells": 12, "samples": 50}
SPEC = dataclasses.replace(TOYS.spec, data=("moons", "pinwheel", "gaussians"), **SMALL)
DENSITY = dataclasses.replace(TOYS, spec=SPEC)


def compute(folder, method, spec=SPEC, name="density", first=0, last=2):
    return run.compute(Cell(name, spec, method, first, last, "", ""), folder / method)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("density")
    return {method: compute(folder, method) for method in TOYS.activations}


def test_shapes(runs):
    shapes = {"nll": (3, 2), "loss": (3, 60, 2), "log_density": (3, 12, 12, 2), "sample": (3, 50, 2, 2)}
    assert {name: runs["annealed"][name].shape for name in shapes} == shapes


@pytest.mark.parametrize(("place", "name"), [*enumerate(SPEC.data)])
def test_the_gaussian_is_the_normal_of_the_datas_moments(runs, place, name):
    draw, test = train_and_test(name, 1, SPEC.points)
    points = draw(100_000)
    normal = MultivariateNormal(points.mean(0), points.T.cov())
    torch.testing.assert_close(gaussian(points).log_prob(test), normal.log_prob(test), rtol=1e-3, atol=1e-3)
    assert runs["gaussian"]["nll"][place, 1] == pytest.approx(-normal.log_prob(test).mean().item(), abs=1e-4)


def test_the_drawn_density_is_that_of_the_flow_and_has_mass_one(runs):
    side = 2 * SPEC.half / (SPEC.cells - 1)
    mass = np.exp(runs["gaussian"]["log_density"]).sum((1, 2)) * side**2
    np.testing.assert_allclose(mass, 0.98, atol=0.03)
    centre = square(SPEC)[6, 2]
    assert centre[0] < 0 < centre[1]  # rows go up, columns to the right


@pytest.mark.parametrize("method", ["flux", "annealed", "smooth", "leaky"])
def test_training_lowers_the_loss(runs, method):
    loss = runs[method]["loss"]
    assert (loss[:, -5:].mean(1) < loss[:, :5].mean(1)).all()
    np.testing.assert_allclose(runs[method]["nll"], loss[:, -5:].mean(1), atol=0.15)


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


def test_figures_draw_densities_samples_and_likelihoods(runs):
    before = torch.get_rng_state()
    pictures = {one.name: one.figure.axes for one in DENSITY.figures(runs)}
    assert torch.equal(torch.get_rng_state(), before)
    assert [*pictures] == [f"density-{kind}" for kind in ("densities", "samples", "likelihoods")]
    densities, samples = (np.reshape(pictures[f"density-{one}"], (3, 6))[:, 1:] for one in ("densities", "samples"))
    for d, m in np.ndindex(3, 5):
        arrays = runs[[*METHODS][1 + m]]
        np.testing.assert_array_equal(densities[d, m].images[0].get_array(), np.exp(arrays["log_density"][d, ..., 0]))
        np.testing.assert_array_equal(samples[d, m].lines[0].get_xydata(), arrays["sample"][d, ..., 0])
    drawn = [[line.get_xdata() for line in axes.lines] for axes in pictures["density-likelihoods"]]
    np.testing.assert_array_equal(drawn, [[runs[method]["nll"][d] for method in METHODS] for d in range(3)])


def test_a_seed_is_the_same_in_any_cell(runs, tmp_path):
    alone = compute(tmp_path, "smooth", first=1)
    assert alone["seed"].tolist() == [1]
    for name in ("nll", "loss", "sample", "log_density"):
        np.testing.assert_allclose(alone[name][..., 0], runs["smooth"][name][..., 1], atol=0.05, rtol=0.01)
