import numpy as np
import pytest

from plunit.ensemble import MLP, forward, initial
from plunit.ensemble.standardizing import in_units
from plunit.play import cloud
from plunit.play.panels import HEIGHT, WIDTH, cloud_of, view_of
from plunit.play.settings import Settings
from plunit.play.targets import task_of

TARGETS = {
    "function": {"kind": "expression", "text": "100 + 50 * sin(x)", "low": 0, "high": 10},
    "curve": {"kind": "paper", "name": "parametric"},
}


def counted(network, theta, task, view):
    """Count the networks in each pixel one by one: [HEIGHT, WIDTH], the top first."""
    counts = np.zeros((HEIGHT, WIDTH), dtype=int)
    (left, right), (bottom, top) = view
    x = np.linspace(*task.box[0], WIDTH * task.outputs)
    found = forward(network, in_units(network, theta, *task.scales), x[None])
    for member in range(theta.shape[1]):
        for at in range(len(x)):
            *u, v = found[:, at, member]
            column = at if task.outputs == 1 else int(np.floor((u[0] - left) / (right - left) * WIDTH))
            row = HEIGHT - 1 - int(np.floor((v - bottom) / (top - bottom) * HEIGHT))
            if 0 <= row < HEIGHT and 0 <= column < WIDTH:
                counts[row, column] += 1
    return counts


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_image_counts_networks_by_the_logarithm(target):
    task = task_of(target)
    network = MLP((1, 3, 3, task.outputs), "plu")
    theta = initial(network, [np.random.default_rng(seed) for seed in range(30)])
    image = cloud_of(network, task, Settings(target, networks=30)).image(theta)
    counts = counted(network, theta, task, view_of(task)).clip(0, 30)
    expected = np.rint(255 * np.log1p(counts) / np.log1p(30))
    assert image.shape == (HEIGHT, WIDTH)
    assert image.dtype == np.uint8
    # float32 puts a few values into the pixel beside
    assert (image != expected).mean() < 0.003
    assert image.max() > 100


def test_networks_that_diverged_are_nowhere():
    task = task_of(TARGETS["function"])
    network = MLP((1, 2, 1), "relu")
    theta = np.full((network.parameters, 4), np.nan, dtype=np.float32)
    theta[:, 1] = np.inf
    theta[:, 2] = 1e38
    image = cloud_of(network, task, Settings({}, networks=4)).image(theta)
    assert image.max() == 0


def test_of_many_networks_some_are_renewed_in_each_image(monkeypatch):
    task = task_of(TARGETS["function"])
    network = MLP((1, 3, 3, 1), "plu")
    theta = initial(network, [np.random.default_rng(seed) for seed in range(50)])
    whole = cloud_of(network, task, Settings({}, networks=50)).image(theta)
    monkeypatch.setattr(cloud, "WORK", 1)
    slow = cloud_of(network, task, Settings({}, networks=50))
    images = [slow.image(theta) for _ in range(4)]
    assert [(image > 0).sum() < (whole > 0).sum() for image in images] == [True, True, True, False]
    np.testing.assert_array_equal(images[-1], whole)
    other = theta[:, ::-1] / 2
    images = [slow.image(other) for _ in range(4)]  # where they were is forgotten
    monkeypatch.undo()
    np.testing.assert_array_equal(images[-1], cloud_of(network, task, Settings({}, networks=50)).image(other))
