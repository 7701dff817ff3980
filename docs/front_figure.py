"""Draw docs/front.png: a thousand networks learn a function; the best one, its knots and its bound; that one as C.

python docs/front_figure.py            # draws it from results/readme/front.json
python docs/front_figure.py --store    # first trains the networks, a few seconds, and stores the best and some others
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from figure_script import run, save_stored
from matplotlib.figure import Figure

from plunit.ensemble import MLP, forward, initial, train
from plunit.ensemble.mlp import exact
from plunit.expressions import parse, sup_error
from plunit.pieces import Curve, Network, curve, save_c
from plunit.pieces.rounding import rounded_up

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "readme" / "front.json"
FUNCTION, LOW, HIGH = "sin(x) + x/3", -6.0, 6.0
NETWORK = MLP((1, 8, 8, 1), "plu")
SEEDS, STEPS, EARLY, SHOWN = 1024, 4000, 100, 64
BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#9a9a9a"
GRID = np.linspace(LOW, HIGH, 121)


def trained() -> dict[str, Any]:
    """Return the best of the networks, and what some others are early in training, on a grid."""
    x = np.linspace(LOW, HIGH, 200, dtype=np.float32)[None]
    start = initial(NETWORK, [np.random.default_rng(seed) for seed in range(SEEDS)])
    data = x, parse(FUNCTION)(x).astype(np.float32)
    ran = train(NETWORK, start, data, steps=STEPS, checkpoints=[EARLY])
    theta = ran.theta
    loss = np.square(forward(NETWORK, theta, x)[0] - parse(FUNCTION)(x[0])[:, None]).mean(0)
    some = forward(NETWORK, ran.checkpoints[0][:, :SHOWN].astype(float), GRID[None])[0].T
    best = int(loss.argmin())
    return {"best": best, "theta": theta[:, best].tolist(), "some": np.round(some, 2).tolist()}


def network(stored: dict[str, Any]) -> Network:
    """Return the best network, exactly."""
    return exact(NETWORK, np.asarray(stored["theta"])[:, None]).member(0)


def header(function: Curve) -> list[str]:
    """Return the lines of a curve as C."""
    with tempfile.TemporaryDirectory() as folder:
        save_c(function, Path(folder) / "f.h", "f")
        return (Path(folder) / "f.h").read_text().splitlines()


def draw(stored: dict[str, Any]) -> Figure:
    """Return the figure."""
    figure = Figure(figsize=(6.2, 4.8), layout="constrained")  # its letters can be read on a phone
    many, one, code = figure.subplot_mosaic([["many", "one"], ["code", "code"]], height_ratios=[1.3, 1]).values()
    y, net = parse(FUNCTION)(GRID), network(stored)
    many.plot(GRID, np.transpose(stored["some"]), color=BLUE, alpha=0.25, linewidth=0.6)
    many.plot(GRID, y, color=ORANGE, linewidth=1.5, label=FUNCTION)
    many.set_title(f"trained by the thousand:\n{SHOWN} of {SEEDS:,}, after {EARLY} of {STEPS:,} steps", fontsize=10)
    many.legend(fontsize=9, frameon=False)
    found = curve(net, LOW, HIGH)
    bound = rounded_up(sup_error(parse(FUNCTION), net, [(LOW, HIGH)]).bound)
    one.plot(found.knots, found.values[:, 0], "-o", color=BLUE, markersize=3.5, linewidth=1.2)
    one.set_title(f"known exactly: the best has {found.pieces}\npieces, error at most {bound}, proved", fontsize=10)
    for axes in (many, one):
        axes.set(ylim=(-2.6, 2.6), xlim=(LOW, HIGH))
        axes.tick_params(labelsize=9)
    lines = [line if len(line) < 80 else f"{line[:76]} ..." for line in header(found)]
    begin = next(at for at, line in enumerate(lines) if line.startswith("static inline void"))
    tables = [line for line in lines if line.startswith("static const")]
    code.text(
        0,
        1,
        "\n".join([*tables, "", *lines[begin : lines.index("}", begin) + 1]]),
        va="top",
        family="monospace",
        fontsize=8.5,
    )
    code.set_title("exported as C: f.h needs no library", fontsize=10, loc="left")
    code.set_axis_off()
    return figure


def save(path: Path) -> None:
    """Draw what is stored."""
    save_stored(draw, STORED, path)


def store(_: bool) -> None:
    """Train the networks and store what is drawn."""
    STORED.write_text(json.dumps(trained()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(__doc__, save, DOCS / "front.png", store, action="store_true", help="train the networks and store them first")
