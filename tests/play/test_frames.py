import json
from itertools import pairwise

import numpy as np
import pytest

from plunit.play.frames import Painter, problem_of
from plunit.play.live_training import advance_all
from plunit.play.panels import view_of
from plunit.play.session import _trainings
from plunit.play.targets import Settings, task_of

TARGETS = {
    "line": {"kind": "expression", "text": "exp(x)", "low": 0, "high": 1},
    "curve": {"kind": "paper", "name": "parametric"},
    "surface": {"kind": "paper", "name": "saddle"},
    "table": {"kind": "csv", "text": "x,y\n" + "".join(f"{n},{n * n}\n" for n in range(20)), "name": "squares.csv"},
    "places": {"kind": "csv", "text": "a,b,z\n" + "".join(f"{n},{n % 3},{n * n}\n" for n in range(20))},
    "drawing": {"kind": "drawn", "points": [[0, 0], [1, 1], [3, 0]]},
}


SHOWN = {"line": "line", "curve": "line", "surface": "image", "table": "dots", "places": "dots", "drawing": "line"}


@pytest.mark.parametrize(("name", "shown"), SHOWN.items())
def test_a_problem_says_what_to_draw(name, shown):
    task, settings = task_of(TARGETS[name]), Settings(TARGETS[name], depth=1, width=5)
    content, payload = problem_of(task, settings, ["a note"])
    json.dumps(content, allow_nan=False)
    assert [key for key in ("line", "dots", "image") if key in content] == [shown]
    assert content["widths"] == (task.inputs, 5, task.outputs)
    assert content["notes"][-1] == "a note"
    (left, right), (bottom, top) = content["view"]["x"], content["view"]["y"]
    if shown == "image":
        image = np.frombuffer(payload, np.uint8).reshape(content["image"]["height"], content["image"]["width"])
        assert len(payload) == image.size
        # x^2 - y^2: bright at the sides, dark at the top and the bottom
        assert image[40, 0] > 240 > 20 > image[0, 48]
        assert content["range"] == [-9, 9]
    else:
        points = np.array(content[shown])
        assert points.shape[1] == 2
        assert (points >= [left, bottom]).all()
        assert (points <= [right, top]).all()


def test_at_most_a_thousand_rows_are_shown():
    target = {"kind": "csv", "text": "x,y\n" + "".join(f"{n},{n % 7}\n" for n in range(3000))}
    content, _ = problem_of(task_of(target), Settings(target), [])
    assert len(content["dots"]) == 1000


def painting(name, networks, activations=("relu", "plu")):
    """Return the painter of networks that have not begun, their trainings and their snapshots."""
    task, settings = task_of(TARGETS[name]), Settings(TARGETS[name], activations, networks=networks)
    trainings = _trainings(task, settings, 0)
    snapshots = [training.snapshot() for training in trainings]
    return Painter(task, settings, snapshots), trainings, snapshots


@pytest.mark.parametrize("name", TARGETS)
def test_the_parts_of_a_frame_lie_in_its_payload_and_do_not_overlap(name):
    painter, _, snapshots = painting(name, 8, ("relu", "plu", "tanh"))
    content, payload = painter.paint(snapshots)
    json.dumps(content, allow_nan=False)
    assert [panel["activation"] for panel in content["panels"]] == ["relu", "plu", "tanh"]
    images = [
        (panel["image"]["offset"], panel["image"]["width"] * panel["image"]["height"]) for panel in content["panels"]
    ]
    edges = [(panel["edges"]["offset"], 16 * panel["edges"]["count"]) for panel in content["panels"] if panel["edges"]]
    parts = sorted(images + edges)
    assert all(offset % 4 == 0 for offset, _ in parts)
    assert all(start + size <= after for (start, size), (after, _) in pairwise(parts))
    assert sum(parts[-1]) == len(payload)
    assert len(edges) == (2 if name in ("surface", "places") else 0)


def test_histograms_have_common_bars_and_all_networks():
    painter, _, snapshots = painting("line", 50)
    snapshots[0].loss[:3] = np.nan
    content, _ = painter.paint(snapshots)
    relu, plu = (panel["histogram"] for panel in content["panels"])
    assert relu["edges"] == plu["edges"]
    assert (sum(relu["counts"]), sum(plu["counts"])) == (47, 50)
    logs = np.log10(snapshots[1].loss)
    inside = [((logs >= a) & (logs < b)).sum() for a, b in pairwise(plu["edges"])]
    assert plu["counts"] == inside


def test_one_activation_after_the_other_gets_new_lines():
    (painter, trainings, _), lines = painting("line", 4), []
    for _ in range(3):
        advance_all(trainings, 5)
        frame = painter.paint([training.snapshot() for training in trainings])
        lines.append([panel["best"]["line"] for panel in frame.content["panels"]])
    same = [[a == b for a, b in zip(*pair, strict=True)] for pair in pairwise(lines)]
    assert same == [[False, True], [True, False]]


def test_a_frame_without_numbers_has_the_pictures_only():
    painter, _, snapshots = painting("line", 4)
    (_, whole), (_, bare) = (painter.paint(snapshots, numbers).content["panels"] for numbers in (True, False))
    assert set(bare) == {"activation", "best", "median", "image", "edges"}
    assert set(whole) == {*bare, "losses", "pieces", "dead", "diverged", "histogram", "alpha", "c"}
    assert all(bare[key] == whole[key] for key in bare)


def test_the_view_has_a_margin_around_the_targets():
    task = task_of({"kind": "expression", "text": "x", "low": 0, "high": 10})
    assert view_of(task).tolist() == [[0, 10], [-2, 12]]
    flat = task_of({"kind": "expression", "text": "x * 0 + 3", "low": 0, "high": 10})
    assert view_of(flat).tolist() == [[0, 10], [2, 4]]
