"""One training without a workshop: whoever calls `round` trains it."""

import numpy as np
import pytest
from calls import SMALL
from waiting import wait_until

from plunit.base.errors import UserError
from plunit.ensemble import forward
from plunit.ensemble.mlp import in_units
from plunit.play import frames, session, workshop
from plunit.play.session import Session, estimate_memory
from plunit.play.targets import settings_of, task_of


def test_a_round_that_was_planned_before_a_pause_does_nothing():
    settings = settings_of(SMALL)
    made = Session(task_of(settings.target), settings)
    made.command("pause")
    made.round(0.01)
    assert (made.command("pause")["step"], made.waiting) == (0, True)
    made.command("step")
    made.round(0.01)
    made.round(0.01)
    assert (made.command("pause")["step"], made.waiting) == (1, True)
    made.command("step")
    made.round(0.01)
    assert made.frame(0).content["panels"][0]["losses"]["steps"] == [2]  # no frame was asked for in between
    made.end("over")
    made.command("resume")
    made.round(0.01)
    assert made.command("pause")["step"] == 2


def test_second_order_steps_are_those_of_one_call_repeat_to_the_bit_and_end():
    target = {"kind": "expression", "text": "abs(x)", "low": -2, "high": 1}
    given = {"target": target, "networks": 6, "width": 2, "depth": 1, "activations": ["relu", "plu"]}
    settings = settings_of({**given, "method": "second order"})
    task = task_of(target)
    made = Session(task, settings)
    start = made._latest[1].loss
    wait_until(lambda: made.ended or made.round(0.01))  # how many steps a round has depends on the machine
    assert "No network improves any more" in made.ended
    made._settle()
    now, names = made._latest[1], {}
    assert (now.loss < start).all()
    assert now.loss.min() < 1e-6
    exec(made.export("plu", "fit").payload, names)
    np.testing.assert_array_equal(names["trained"].theta[:, 0], now.theta[:, np.argmin(now.loss)])


@pytest.mark.parametrize(("width", "said"), [(16, "use at most 246 networks"), (32, "use a smaller network")])
def test_second_order_steps_that_would_take_too_long_are_refused(width, said):
    text = "x,y,z\n" + "\n".join(f"{i},{i * i % 7},{i % 5}" for i in range(200 if width == 16 else 4000))
    given = {"target": {"kind": "csv", "text": text}, "networks": 4096, "depth": 6, "width": width}
    settings = settings_of({**given, "method": "second order", "activations": ["plu"]})
    with pytest.raises(UserError, match=said):
        session.check_work(task_of(settings.target), settings)
    session.check_work(task_of(settings.target), settings_of(given))


def test_the_estimate_of_memory_is_not_too_low():
    settings = settings_of({**SMALL, "networks": 512, "width": 16})
    made = Session(task_of(settings.target), settings)
    made.round(0.01)
    made.frame(0)
    state = [vars(training._state) for training in made._trainings]
    arrays = [array.nbytes for one in state for array in one.values() if isinstance(array, np.ndarray)]
    copies = sum(one.theta.nbytes + one.loss.nbytes for one in made._latest)
    clouds = sum(panel._cloud._parts.nbytes for panel in made._painter._panels)
    assert sum(arrays) + copies + clouds < estimate_memory(made._task, settings)


def test_losses_are_mean_square_errors_in_the_units_of_the_user():
    target = {"kind": "expression", "text": "1e6 + 5000 * sin(x)", "low": 3, "high": 9}
    settings = settings_of({**SMALL, "target": target})
    task = task_of(settings.target)
    made = Session(task, settings)
    made.round(0.001)
    now = made._latest[1]
    theta = in_units(now.network, now.theta, *task.scales)
    errors = forward(now.network, theta, task.x.T)[0] - task.y
    np.testing.assert_allclose(now.loss, (errors**2).mean(0), rtol=1e-3)


@pytest.mark.parametrize(("width", "networks", "activations"), [(16, 50, ["relu", "plu"]), (32, 8, ["plu"])])
def test_pieces_of_deep_networks_of_two_inputs_are_not_found_for_ever(monkeypatch, width, networks, activations):
    limits = []

    def limited(work):
        return lambda *given, limit: (limits.append(limit), work(*given, limit=limit))[1]

    for name in ("polygons", "polygon_counts"):
        monkeypatch.setattr(frames, name, limited(getattr(frames, name)))
    target = {"kind": "expression", "text": "sin(x*y)"}
    given = {"target": target, "depth": 6, "width": width, "networks": networks, "activations": activations}
    settings = settings_of({**given, "paused": True})
    frame = Session(task_of(target), settings).frame(0).content
    assert frame["frame"] == 1
    assert frame["panels"][-1]["pieces"] is None
    assert max(limits) <= 8 * 2000  # without limits they take 16 s and more than 35 s


class Clock:
    """The clock of a session: only steps and sleeping take time."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    perf_counter = monotonic

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(session, "time", made)
    return made


@pytest.mark.parametrize("cost", [1e-5, 1e-4, 2e-3])
def test_rounds_take_the_time_that_they_are_given(monkeypatch, clock, cost):
    settings = settings_of(SMALL)
    made = Session(task_of(settings.target), settings)
    monkeypatch.setattr(session, "advance_all", lambda trainings, steps: clock.sleep(cost * steps))
    for _ in range(20):  # by then rounds have their length
        made.round(0.016)
    begin = clock.now
    for _ in range(10):
        made.round(0.016)
    assert clock.now - begin == pytest.approx(0.16, rel=0.1)


def test_frames_keep_their_rate(clock):
    settings = settings_of(SMALL)
    made = Session(task_of(settings.target), settings)
    made.frame(0)
    begin = clock.now
    for after in range(1, 53):
        made.command("step")
        made.round(0.01)
        assert made.frame(after).content["frame"] == after + 1
    assert clock.now - begin == pytest.approx(52 / session._RATE, rel=1e-6)


def test_training_can_be_watched_for_ten_seconds_and_then_pauses(monkeypatch, clock):
    def advance(trainings, steps):
        clock.sleep(1e-5 * steps)
        for training in trainings:
            training.step += steps

    settings = settings_of(SMALL)
    made = Session(task_of(settings.target), settings)
    monkeypatch.setattr(session, "advance_all", advance)
    monkeypatch.setattr(session, "WATCHED", workshop.WATCHED)
    while not made.paused:
        made.round(0.032)
        assert made._trainings[0].step <= session.WATCHED
        if made._trainings[0].step > 1000 and clock.now < 100:
            made.command("pause")
            clock.sleep(100)  # a pause does not count
            made.command("resume")
    assert made._trainings[0].step == session.WATCHED == 2048
    assert clock.now - 100 == pytest.approx(10, rel=0.02)
    made.command("resume")
    begin = clock.now
    for _ in range(20):
        made.round(0.032)
    assert made._trainings[0].step > session.WATCHED + 10 * session.PACE * (clock.now - begin)
    assert not made.paused
