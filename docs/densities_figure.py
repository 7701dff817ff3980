"""Draw docs/densities.png from results/densities/trainings.json: test NLL against parameters and against seconds.

Run: python docs/densities_figure.py
"""

import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "densities" / "trainings.json"
TOYS = ("moons", "gaussians", "checkerboard", "pinwheel")
STYLES = {  # told apart with any common colour blindness, and by their markers
    "SmoothPLU": ("#009E73", "o"),
    "PLU, annealed": ("#0072B2", "s"),
    "PLU, boundary term": ("#56B4E9", "v"),
    "LeakyReLU, boundary term": ("#999999", "P"),
    "zuko NSF": ("#D55E00", "D"),
    "zuko MAF": ("#E69F00", "^"),
    "nflows RQ": ("#CC79A7", "X"),
    "nflows LULinear + LeakyReLU": ("#000000", "x"),
}

Point = tuple[float, float, float]
"""Parameters, seconds and NLL: means over seeds, of the NLL over the toys too."""


def points(trainings: dict[str, dict[str, float]]) -> dict[tuple[str, int], Point]:
    """Return a point for each (model, steps) that has results for all four toys."""
    found: dict[tuple[str, int], dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for key, one in trainings.items():
        model, toy, _, steps = key.split("; ")
        found[model, int(steps.removesuffix(" steps"))][toy].append(one)
    return {
        place: (
            next(iter(toys.values()))[0]["parameters"],
            statistics.mean(one["seconds"] for some in toys.values() for one in some),
            statistics.mean(statistics.mean(one["nll"] for one in some) for some in toys.values()),
        )
        for place, toys in found.items()
        if set(toys) == set(TOYS)
    }


def family(model: str) -> str:
    """Return the series a model belongs to: its name without size."""
    return re.sub(r"^small |, \d+( x \d+)+$|, \d+ blocks$", "", model)


def sizes(found: dict[tuple[str, int], Point], series: str) -> list[Point]:
    """Return the points of a series by parameters: of each model the one with the most steps up to 60,000."""
    best: dict[str, tuple[int, Point]] = {}
    for (model, steps), point in found.items():
        if family(model) == series and steps != 20_000 and steps > best.get(model, (0, point))[0]:
            best[model] = (steps, point)
    return sorted(point for _, point in best.values())


def lengths(found: dict[tuple[str, int], Point], series: str) -> list[Point]:
    """Return the points of the largest model of a series by seconds."""
    mine = [(model, point) for (model, _), point in found.items() if family(model) == series]
    most = max((point[0] for _, point in mine), default=0)
    return sorted((point for _, point in mine if point[0] == most), key=lambda point: point[1])


def draw(results: Path, figure_path: Path) -> None:
    """Draw both panels and save them."""
    found = points(json.loads(results.read_text())["trainings"])
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", sharey=True)
    for series, (colour, marker) in STYLES.items():
        style = {"color": colour, "marker": marker, "markersize": 6, "linewidth": 1.3}
        for axes, chosen, index in ((left, sizes(found, series), 0), (right, lengths(found, series), 1)):
            inside = [point for point in chosen if point[2] < 2.3]
            if inside:
                axes.plot([point[index] for point in inside], [point[2] for point in inside], label=series, **style)
    left.set(
        xscale="log", xlabel="parameters", ylabel="test NLL in nats, mean of four toys", title="by number of parameters"
    )
    right.set(
        xscale="log", xlabel="processor time in seconds, one thread", title="by training time, the largest of each kind"
    )
    left.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(figure_path, dpi=120)
    plt.close(figure)


def save(figure_path: Path) -> None:
    """Draw the stored results."""
    draw(RESULTS, figure_path)


if __name__ == "__main__":
    save(Path(__file__).with_name("densities.png"))
