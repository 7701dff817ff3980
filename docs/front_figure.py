"""Draw docs/front.png: the best of a thousand networks on a function, its knots, and its error within a proved bound.

python docs/front_figure.py            # draws it from results/readme/front.json
python docs/front_figure.py --store    # first trains the networks, a few seconds, and stores the best
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from figure_script import WIDTH, run, save_stored
from matplotlib.figure import Figure

from plunit.ensemble import MLP, forward, initial, train
from plunit.ensemble.mlp import exact
from plunit.expressions import parse, sup_error
from plunit.lab.pictures import COLOURS
from plunit.pieces import Network, curve
from plunit.pieces.rounding import rounded_up

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "readme" / "front.json"
FUNCTION, LOW, HIGH = "sin(x) + x/3", -6.0, 6.0
NETWORK = MLP((1, 8, 8, 1), "plu")
SEEDS, STEPS = 1024, 4000


def best_network() -> dict[str, Any]:
    """Return the parameters of the best of the networks."""
    x = np.linspace(LOW, HIGH, 200, dtype=np.float32)[None]
    start = initial(NETWORK, [np.random.default_rng(seed) for seed in range(SEEDS)])
    theta = train(NETWORK, start, (x, parse(FUNCTION)(x).astype(np.float32)), steps=STEPS).theta
    loss = np.square(forward(NETWORK, theta, x)[0] - parse(FUNCTION)(x[0])[:, None]).mean(0)
    best = int(loss.argmin())
    return {"best": best, "theta": theta[:, best].tolist()}


def network(stored: dict[str, Any]) -> Network:
    """Return the best network, exactly."""
    return exact(NETWORK, np.asarray(stored["theta"])[:, None]).member(0)


def draw(stored: dict[str, Any]) -> Figure:
    """Return the figure."""
    figure = Figure(figsize=(WIDTH, 4.6))
    fit, error = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    x, net = np.linspace(LOW, HIGH, 2001), network(stored)
    y = parse(FUNCTION)(x)
    found = curve(net, LOW, HIGH)
    bound = rounded_up(sup_error(parse(FUNCTION), net, [(LOW, HIGH)]).bound)
    fit.plot(x, y, color="0.72", linewidth=6, label=FUNCTION)
    fit.plot(found.knots, found.values[:, 0], color=COLOURS["plu"], label=f"network of {found.pieces} straight pieces")
    fit.plot(found.knots, found.values[:, 0], "o", color=COLOURS["plu"], markersize=4.5, label="its knots")
    fit.set(ylim=(-2.1, 4.1), yticks=[-1, 0, 1], title=f"the best of {SEEDS:,} networks")
    fit.legend(loc="upper left")
    error.plot(x, net(x[:, None])[:, 0] - y, color=COLOURS["plu"], label="network minus function")
    error.axhline(bound, color="black", linestyle="--", label=f"proved: at most {bound} everywhere")
    error.axhline(-bound, color="black", linestyle="--")
    error.set(xlim=(LOW, HIGH), ylim=(-1.3 * bound, 3.4 * bound), xlabel="x")
    error.set_yticks([-bound, 0, bound], [f"{-bound:.2g}", "0", f"{bound:.2g}"])
    error.legend(loc="upper left")
    return figure


def save(path: Path) -> None:
    """Draw the stored network."""
    save_stored(draw, STORED, path)


def store(_: bool) -> None:
    """Train the networks and store the best."""
    STORED.write_text(json.dumps(best_network()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(__doc__, save, DOCS / "front.png", store, action="store_true", help="train the networks and store them first")
