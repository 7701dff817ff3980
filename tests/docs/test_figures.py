"""The figures of the pages show what is stored: each is drawn anew. tests/play does that with the playground's."""

import csv
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("matplotlib").use("Agg")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PART = 24


FIGURES = {
    "docs/polygons.png": "polygons_figure",
    "docs/plu.png": "plu_figure",
    "docs/densities.png": "densities_figure",
    "results/cifar10/curves.png": "cifar10_figure",
    "results/density/densities.png": "toys_figure",
}


def script(name):
    """Return what is in a script; the scripts import one another."""
    sys.path.insert(0, str(DOCS))
    try:
        return runpy.run_path(str(DOCS / f"{name}.py"))
    finally:
        sys.path.remove(str(DOCS))


def grey(path):
    """Return the grey levels of a picture."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L"), float)


def parts(levels):
    """Return the mean of each square of 24 x 24 pixels: small moves of letters hardly change it."""
    rows, columns = (size // PART for size in levels.shape)
    return levels[: rows * PART, : columns * PART].reshape(rows, PART, columns, PART).mean((1, 3))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_from_what_is_stored(name, tmp_path):
    script(FIGURES[name])["save"](tmp_path / "figure.png")
    ours, stored = grey(tmp_path / "figure.png"), grey(ROOT / name)
    assert ours.shape == stored.shape
    assert np.abs(parts(ours) - parts(stored)).max() < 4  # of 255


@pytest.mark.parametrize("method", ["plain", "flux", "annealed", "smooth", "leaky"])
def test_the_flows_of_the_toys_have_the_likelihoods_of_the_record(method):
    from benchmarks.flow_methods import train_and_test

    figure = script("toys_figure")
    with (ROOT / "results" / "density" / "summary.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == method and row["seed"] == "0"]
    flows = figure["restored"](method, json.loads(figure["STORED"].read_text())[method])
    tests = [train_and_test(row["data"], 0)[1] for row in rows]
    ours = [-flow.log_prob(test).mean().item() for flow, test in zip(flows, tests, strict=True)]
    # five seeds side by side round differently than one
    assert ours == pytest.approx([float(row["nll"]) for row in rows], abs=0.02)
