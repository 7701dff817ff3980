import numpy as np
import pytest

from plunit.ensemble import MLP, Rows, forward, initial, train
from plunit.play.live_training import LOOKED, LiveTraining, advance_all


def start(network, members):
    return initial(network, [np.random.default_rng([7, i]) for i in range(members)])


def table(rows):
    x = np.linspace(-6, 6, rows, dtype=np.float32)[:, None]
    return x, np.sin(x)


@pytest.mark.parametrize("activation", ["plu", "plu_learned", "tanh"])
@pytest.mark.parametrize("batch", [0, 8])
def test_parts_give_the_bits_of_one_training(activation, batch):
    network = MLP((1, 3, 3, 1), activation)
    rows = Rows(*table(50), batch=batch, seeds=range(5) if batch else ())
    training = LiveTraining(network, start(network, 5), rows, lr=0.02, alpha=0.2, c=0.7)
    for steps in (1, 3, 40, 17):
        advance_all([training], steps)
    whole = train(network, start(network, 5), rows, steps=61, lr=0.02, alpha=0.2, c=0.7)
    found = training.snapshot()
    assert found.step == training.step == 61
    np.testing.assert_array_equal(found.theta, whole.theta)


@pytest.mark.parametrize("steps", [0, 1, 25])
def test_the_losses_are_those_of_the_present_parameters(steps):
    network = MLP((1, 3, 3, 1), "plu")
    x, y = table(LOOKED + 100)
    training = LiveTraining(network, start(network, 20), Rows(x, y), lr=0.01, unit=9.0)
    if steps:
        advance_all([training], steps)
    found = training.snapshot()
    errors = forward(network, found.theta.astype(np.float64), x[:LOOKED].T)[0] - y[:LOOKED]
    np.testing.assert_allclose(found.loss, 9 * (errors**2).mean(0), rtol=2e-5)


def test_the_first_look_changes_nothing_and_a_snapshot_stays_as_it_was():
    network = MLP((1, 4, 1), "relu")
    training = LiveTraining(network, start(network, 16), Rows(*table(20)), lr=0.5)
    before = training.snapshot()
    loss = before.loss.copy()
    advance_all([training], 5)
    np.testing.assert_array_equal(before.theta, start(network, 16))
    np.testing.assert_array_equal(before.loss, loss)


@pytest.mark.parametrize("members", [5, 16, 33])
def test_trainings_together_give_the_bits_of_each_alone(members):
    networks = [MLP((1, 3, 3, 1), "plu"), MLP((1, 4, 1), "tanh"), MLP((1, 3, 3, 1), "plu_learned")]
    alone, together = (
        [LiveTraining(network, start(network, members), Rows(*table(50)), lr=0.02) for network in networks]
        for _ in "ab"
    )
    for steps in (1, 30):
        advance_all(together, steps)
        for training in alone:
            advance_all([training], steps)
    for one, other in zip(alone, together, strict=True):
        assert other.step == 31
        np.testing.assert_array_equal(other.snapshot().theta, one.snapshot().theta)
        np.testing.assert_array_equal(other.snapshot().loss, one.snapshot().loss)
        assert (other.snapshot().theta != start(other.snapshot().network, members)).any(axis=0).all()
