"""The figure of the docs page is drawn from the stored results."""

import json
import runpy
import statistics
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib").use("Agg")

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))  # figure_script
FIGURE = runpy.run_path(str(ROOT / "docs" / "densities_figure.py"))
TRAININGS = json.loads((ROOT / "results" / "densities" / "trainings.json").read_text())["trainings"]
TOYS = ("moons", "gaussians", "checkerboard", "pinwheel")


def test_a_point_is_the_mean_over_toys_of_means_over_seeds():
    parameters, seconds, nll = FIGURE["points"](TRAININGS)["SmoothPLU, 48 blocks", 60_000]
    mine = {key: one for key, one in TRAININGS.items() if key.startswith("SmoothPLU, 48 blocks;") and "60000" in key}
    by_toy = [[one["nll"] for key, one in mine.items() if f"; {toy};" in key] for toy in TOYS]
    assert parameters == 582
    assert nll == pytest.approx(statistics.mean(map(statistics.mean, by_toy)))
    assert seconds == pytest.approx(statistics.mean(one["seconds"] for one in mine.values()))


def test_a_model_without_all_toys_is_left_out():
    some = {"zuko NSF; moons; seed 0; 3000 steps": {"parameters": 1, "seconds": 1.0, "nll": 1.0}}
    assert FIGURE["points"](some) == {}
