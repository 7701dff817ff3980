"""Frames of a session: what is drawn, as the networks themselves say."""

import json
from itertools import pairwise

import numpy as np
import pytest

from plunit.ensemble import MLP, Rows, forward, initial
from plunit.ensemble.mlp import in_units
from plunit.play import frames
from plunit.play.frames import _HEIGHT, _MOST, _WIDTH, Cloud, Painter, Panel, pixels, problem_of, view_of
from plunit.play.live_training import LiveTraining, Snapshot, advance_all
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


def test_one_activation_after_the_other_gets_new_lines_and_with_numbers_all_do():
    (painter, trainings, _), lines = painting("line", 4), []
    for numbers in (False, False, False, True):
        advance_all(trainings, 5)
        frame = painter.paint([training.snapshot() for training in trainings], numbers)
        lines.append([panel["best"]["line"] for panel in frame.content["panels"]])
    same = [[a == b for a, b in zip(*pair, strict=True)] for pair in pairwise(lines)]
    assert same == [[False, True], [True, False], [False, False]]


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


SINE = {"kind": "expression", "text": "30 * sin(x)", "low": 0, "high": 12}
PLANE = {"kind": "expression", "text": "x - 3 * y", "low": -2, "high": 3}
CURVE = {"kind": "paper", "name": "parametric"}
DIGITS = 1e-4


def panel_of(widths, activation, networks):
    """Return a panel of networks that learn the sine, their form, and their start."""
    network = MLP(widths, activation)
    theta = initial(network, [np.random.default_rng(seed) for seed in range(networks)])
    return Panel(network, task_of(SINE), Settings(SINE, networks=networks)), network, theta


def painted(target, activation, *, networks=24, steps=60, width=3):
    """Train a little; return the panel's parts, the task, the snapshot and the parameters in units."""
    task, settings = task_of(target), Settings(target, networks=networks, alpha=0.2, c=0.8)
    network = MLP((task.inputs, width, width, task.outputs), activation)
    start = initial(network, [np.random.default_rng([0, i]) for i in range(networks)], alpha=0.2, c=0.8)
    training = LiveTraining(network, start, Rows(*task.scaled), lr=0.02, alpha=0.2, c=0.8)
    advance_all([training], steps)
    now = training.snapshot()
    parts = Panel(network, task, settings).paint(now, True)
    return parts, task, now, in_units(network, now.theta, *task.scales)


@pytest.mark.parametrize("activation", ["relu", "plu", "plu_learned", "hardtanh"])
def test_the_lines_are_the_networks_and_each_knot_bends(activation):
    (panel, _, _), task, now, theta = painted(SINE, activation)
    for drawn in (panel["best"], panel["median"]):
        x, y = np.array(drawn["line"]).T
        at = np.random.default_rng(0).uniform(*task.box[0], 500)
        values = forward(now.network, theta[:, [drawn["member"]]], at[None], 0.2, 0.8)[0, :, 0]
        np.testing.assert_allclose(np.interp(at, x, y), values, atol=30 * DIGITS)
        assert drawn["pieces"] == len(drawn["line"]) - 1 > 1
        assert np.array_equal(drawn["line"], np.round(drawn["line"], 5))  # seven digits of 30
        assert (np.abs(np.diff(np.diff(y) / np.diff(x))) > 1e-4).all()


def test_a_smooth_network_is_sampled_and_its_surface_has_no_edges():
    (panel, _, edges), *_ = painted(PLANE, "tanh", steps=5)
    assert (edges, "line" in panel["best"]) == (None, False)
    (panel, _, _), _, now, theta = painted(SINE, "tanh")
    x, y = np.array(panel["median"]["line"]).T
    values = forward(now.network, theta[:, [panel["median"]["member"]]], x[None])[0, :, 0]
    np.testing.assert_allclose(y, values, atol=30 * DIGITS)
    assert (len(x), panel["median"]["pieces"], panel["pieces"]) == (_WIDTH, None, None)


def test_a_parametric_curve_is_drawn_in_its_plane():
    (panel, _, _), task, now, theta = painted(CURVE, "plu")
    line = np.array(panel["best"]["line"])
    # t of the points is not sent: each must lie on the curve of the network
    t = np.linspace(*task.box[0], 20_000)
    curve = forward(now.network, theta[:, [panel["best"]["member"]]], t[None], 0.2, 0.8)[..., 0].T
    away = np.sqrt(((line[:, None] - curve[None]) ** 2).sum(-1)).min(1)
    assert away.max() < 0.01


def test_best_and_median_are_by_the_loss():
    (panel, _, _), _, now, _ = painted(SINE, "plu")
    order = np.argsort(now.loss)
    assert panel["best"]["member"] == order[0]
    assert panel["median"]["member"] == order[(len(order) - 1) // 2]
    assert panel["best"]["loss"] == pytest.approx(now.loss.min(), rel=1e-4)
    assert panel["losses"]["middle"][-1] == pytest.approx(np.median(now.loss), rel=0.1)
    assert panel["losses"]["low"][-1] <= panel["losses"]["middle"][-1] <= panel["losses"]["high"][-1]


def test_alpha_and_c_are_those_in_force():
    (fixed, _, _), *_ = painted(SINE, "plu")
    (learned, _, _), _, now, _ = painted(SINE, "plu_learned")
    (none, _, _), *_ = painted(SINE, "relu")
    assert (fixed["alpha"], fixed["c"]) == ([0.2, 0.2], [0.8, 0.8])
    raw_alpha, raw_c = now.network.raw(now.theta)
    np.testing.assert_allclose(learned["alpha"], np.median(1 / (1 + np.exp(-raw_alpha)), axis=1), atol=1e-4)
    np.testing.assert_allclose(learned["c"], np.median(np.exp(raw_c), axis=1), atol=1e-4)
    assert "alpha" not in none


def test_pieces_are_counted_along_the_interval():
    (panel, _, _), task, now, theta = painted(SINE, "relu", networks=8)
    x = np.linspace(*task.box[0], 200_001)
    values = forward(now.network, theta, x[None])[0]
    bends = np.abs(np.diff(values, 2, axis=0)) > 1e-7
    # a kink between two points bends both of their differences
    counts = 1 + (bends[1:] & ~bends[:-1]).sum(0) + bends[0]
    assert panel["pieces"]["middle"] == np.median(counts)


def test_the_surface_of_the_best_network_with_the_top_first():
    (panel, image, _), task, now, theta = painted(PLANE, "plu", steps=400)
    places = pixels(task.box)
    assert places[0].tolist() == pytest.approx([-2 + 2.5 / _WIDTH, 3 - 2.5 / _HEIGHT])
    assert places[_WIDTH - 1, 0] > places[0, 0]
    z = forward(now.network, theta[:, [panel["best"]["member"]]], places.T, 0.2, 0.8)[0, :, 0]
    expected = ((z - task.y.min()) / np.ptp(task.y) * 255).clip(0, 255).round().reshape(_HEIGHT, _WIDTH)
    np.testing.assert_array_equal(image, expected)
    # x - 3 y is largest at the right end of the bottom
    assert image[-1, -1] > 250
    assert image[0, 0] < 5


def test_edges_are_where_the_slope_of_the_surface_changes():
    (panel, _, edges), _, now, theta = painted(PLANE, "relu", steps=20)
    assert edges.dtype == np.float32
    theta = theta[:, [panel["best"]["member"]]]
    a, b = edges[:, :2].astype(float), edges[:, 2:].astype(float)
    long = np.linalg.norm(b - a, axis=1) > 0.2
    normal = (b - a)[long, ::-1] * [1, -1] / np.linalg.norm(b - a, axis=1)[long, None]
    middle, h = (a + b)[long] / 2, 1e-3
    values = [forward(now.network, theta, (middle + k * h * normal).T)[0, :, 0] for k in (-2, -1, 1, 2)]
    slopes = (values[1] - values[0]) / h, (values[3] - values[2]) / h
    assert len(middle) > 2
    assert (np.abs(slopes[0] - slopes[1]) > 1e-6).all()


def test_networks_that_diverged_are_counted_and_nothing_breaks():
    panel, network, theta = panel_of((1, 3, 3, 1), "plu", 5)
    theta[:, 2:] = np.nan
    loss = np.array([np.inf, 0.5, np.nan, np.nan, np.nan])
    found, image, _ = panel.paint(Snapshot(network, 3, theta, loss), True)
    assert (found["diverged"], found["best"]["member"], found["best"]["loss"]) == (4, 1, 0.5)
    json.dumps(found, allow_nan=False)
    all_gone = Snapshot(network, 4, theta * np.nan, loss * np.nan)
    found, image, _ = panel.paint(all_gone, True)
    assert (found["diverged"], found["losses"]["middle"][-1], image.max()) == (5, None, 0)
    json.dumps(found, allow_nan=False)


def test_a_long_course_keeps_its_form():
    panel, network, theta = panel_of((1, 1, 1), "tanh", 3)
    for step in range(1, 1001):
        found, *_ = panel.paint(Snapshot(network, step, theta, np.full(3, 1 / step)), False)
    losses = found["losses"]
    assert _MOST / 2 < len(losses["steps"]) <= _MOST
    assert (losses["steps"][0], losses["steps"][-1]) == (1, 1000)
    assert (np.diff(losses["steps"]) > 0).all()
    np.testing.assert_allclose(losses["middle"], 1 / np.array(losses["steps"]), rtol=1e-4)
    gaps = np.diff(losses["steps"])[:-1]
    assert gaps.min() == gaps.max()


def test_the_median_network_stays_while_it_is_in_the_middle():
    panel, network, theta = panel_of((1, 1, 1), "tanh", 101)
    members = []
    for shift in (0, 3, 30):
        loss = np.roll(np.arange(101.0), shift)
        members.append(panel.paint(Snapshot(network, 1, theta, loss), True)[0]["median"]["member"])
    assert members == [50, 50, 80]


def test_the_losses_of_best_and_median_are_the_newest_while_lines_wait_for_their_turn():
    panel, network, theta = panel_of((1, 2, 1), "relu", 9)
    first = panel.paint(Snapshot(network, 1, theta, np.arange(1.0, 10)), True)[0]
    second = panel.paint(Snapshot(network, 2, 2 * theta, np.arange(9.0, 0, -1) / 100), False)[0]
    assert (second["best"]["member"], second["best"]["loss"]) == (8, 0.01)
    assert second["median"]["loss"] == 0.05
    assert second["best"]["line"] == first["best"]["line"]
    third = panel.paint(Snapshot(network, 3, 2 * theta, np.arange(9.0, 0, -1) / 100), True)[0]
    assert third["best"]["line"] != first["best"]["line"]


CLOUDS = {
    "function": {"kind": "expression", "text": "100 + 50 * sin(x)", "low": 0, "high": 10},
    "curve": {"kind": "paper", "name": "parametric"},
}


def counted(network, theta, task, view):
    """Count the networks in each pixel one by one: [height, width], the top first."""
    counts = np.zeros((_HEIGHT, _WIDTH), dtype=int)
    (left, right), (bottom, top) = view
    x = np.linspace(*task.box[0], _WIDTH * task.outputs)
    found = forward(network, in_units(network, theta, *task.scales), x[None])
    for member in range(theta.shape[1]):
        for at in range(len(x)):
            *u, v = found[:, at, member]
            column = at if task.outputs == 1 else int(np.floor((u[0] - left) / (right - left) * _WIDTH))
            row = _HEIGHT - 1 - int(np.floor((v - bottom) / (top - bottom) * _HEIGHT))
            if 0 <= row < _HEIGHT and 0 <= column < _WIDTH:
                counts[row, column] += 1
    return counts


@pytest.mark.parametrize("target", CLOUDS.values(), ids=CLOUDS)
def test_the_image_counts_networks_by_the_logarithm(target):
    task = task_of(target)
    network = MLP((1, 3, 3, task.outputs), "plu")
    theta = initial(network, [np.random.default_rng(seed) for seed in range(30)])
    image = Cloud(network, task, Settings(target, networks=30)).image(theta)
    counts = counted(network, theta, task, view_of(task)).clip(0, 30)
    expected = np.rint(255 * np.log1p(counts) / np.log1p(30))
    assert image.shape == (_HEIGHT, _WIDTH)
    assert image.dtype == np.uint8
    # float32 puts a few values into a neighbouring pixel
    assert (image != expected).mean() < 0.003
    assert image.max() > 100


def test_networks_that_diverged_are_in_no_pixel():
    task = task_of(CLOUDS["function"])
    network = MLP((1, 2, 1), "relu")
    theta = np.full((network.parameters, 4), np.nan, dtype=np.float32)
    theta[:, 1] = np.inf
    theta[:, 2] = 1e38
    image = Cloud(network, task, Settings({}, networks=4)).image(theta)
    assert image.max() == 0


def test_of_many_networks_some_are_renewed_in_each_image(monkeypatch):
    task = task_of(CLOUDS["function"])
    network = MLP((1, 3, 3, 1), "plu")
    theta = initial(network, [np.random.default_rng(seed) for seed in range(50)])
    whole = Cloud(network, task, Settings({}, networks=50)).image(theta)
    monkeypatch.setattr(frames, "_WORK", 1)
    slow = Cloud(network, task, Settings({}, networks=50))
    images = [slow.image(theta) for _ in range(4)]
    assert [(image > 0).sum() < (whole > 0).sum() for image in images] == [True, True, True, False]
    np.testing.assert_array_equal(images[-1], whole)
    other = theta[:, ::-1] / 2
    images = [slow.image(other) for _ in range(4)]  # where they were is forgotten
    monkeypatch.undo()
    np.testing.assert_array_equal(images[-1], Cloud(network, task, Settings({}, networks=50)).image(other))
