"""Draw docs/densities.png from results/densities/trainings.json: test NLL against parameters and against seconds.

Run: python docs/densities_figure.py
"""

import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

from figure_script import WIDTH, save_figure, style
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "densities" / "trainings.json"
TOYS = ("moons", "gaussians", "checkerboard", "pinwheel")
STYLES = {  # after Okabe and Ito, for colour-blind readers
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


def draw(trainings: dict[str, dict[str, float]]) -> Figure:
    """Return the figure."""
    found = points(trainings)
    figure = Figure(figsize=(WIDTH, 8.2))
    panels = figure.subplots(2, 1, sharey=True)
    for series, (colour, marker) in STYLES.items():
        line = {"color": colour, "marker": marker, "markersize": 6, "label": series}
        for axes, chosen, index in zip(panels, (sizes(found, series), lengths(found, series)), (0, 1), strict=True):
            inside = [point for point in chosen if point[2] < 2.3]
            if inside:
                axes.plot([point[index] for point in inside], [point[2] for point in inside], **line)
    panels[0].set(xlabel="parameters", title="by size")
    panels[1].set(xlabel="processor time in seconds", title="by training time, the largest of each kind")
    for axes in panels:
        axes.set(xscale="log", ylabel="test NLL in nats, mean of four toys")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=10)
    return figure


def save(path: Path) -> None:
    """Draw the stored results."""
    with style():
        save_figure(draw(json.loads(RESULTS.read_text())["trainings"]), path)


if __name__ == "__main__":
    save(Path(__file__).with_name("densities.png"))
