"""Sessions from start to end, without HTTP."""

import gc
import json
import math
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from calls import SMALL
from waiting import wait_until

from plunit.base.errors import UserError
from plunit.ensemble import ACTIVATIONS
from plunit.play import session, workshop
from plunit.play.session import Session
from plunit.play.workshop import SESSIONS, UnknownSession, Workshop


@pytest.fixture
def shop(monkeypatch):
    monkeypatch.setattr(session, "_PATIENCE", 0.1)
    made = Workshop()
    yield made
    made.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "plunit play"]


def start(shop, **settings):
    return shop.call("start", {"settings": {**SMALL, **settings}}).content["session"]


def frames(shop, name, count):
    """Return a number of frames, one after the other."""
    found = [{"frame": 0}]
    while len(found) <= count:
        frame = shop.call("frame", {"session": name, "after": found[-1]["frame"]}).content
        found += [] if "unchanged" in frame else [frame]
    return found[1:]


def numbered(shop, name, after=0):
    """Return the next frame, newer than a number, that has numbers."""
    while True:
        frame = shop.call("frame", {"session": name, "after": after}).content
        if "panels" in frame and "losses" in frame["panels"][0]:
            return frame
        after = frame["frame"]


def test_frames_follow_the_training_of_all_activations(shop):
    name = start(shop, lr=0.03)
    found = frames(shop, name, 4)
    assert [frame["frame"] for frame in found] == [1, 2, 3, 4]
    steps = [frame["step"] for frame in found]
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert all(len(frame["panels"]) == 2 and frame["ended"] == "" for frame in found)
    wait_until(lambda: frames(shop, name, 1)[0]["step"] > 300)
    panels = numbered(shop, name)["panels"]
    assert len({panel["losses"]["steps"][-1] for panel in panels}) == 1
    assert panels[1]["losses"]["middle"][-1] < 0.5 * panels[1]["losses"]["middle"][0]


def test_a_pause_takes_no_steps_and_a_step_takes_one(shop):
    name = start(shop, paused=True)
    first = frames(shop, name, 1)[0]
    assert (first["step"], first["paused"]) == (0, True)
    again = shop.call("frame", {"session": name, "after": 1}).content
    assert (again["unchanged"], again["frame"], again["step"]) == (True, 1, 0)
    assert "panels" not in again
    for step in (1, 2):
        shop.call("command", {"session": name, "command": "step"})
        frame = shop.call("frame", {"session": name, "after": step}).content
        assert (frame["step"], frame["panels"][0]["losses"]["steps"][-1]) == (step, step)
    assert shop.call("command", {"session": name, "command": "resume"}).content["paused"] is False
    wait_until(lambda: shop.call("frame", {"session": name}).content["step"] > 5)

    def waits():
        steps = []
        for _ in range(3):
            steps.append(shop.call("command", {"session": name, "command": "pause"}).content["step"])
            time.sleep(0.05)
        return len(set(steps)) == 1

    wait_until(waits)  # the round that was under way has ended


def test_a_frame_that_was_lost_is_sent_again(shop):
    name = start(shop, paused=True)
    first, second = (shop.call("frame", {"session": name, "after": 0}) for _ in range(2))
    assert first.content["frame"] == second.content["frame"] == 1
    assert first.payload == second.payload


def test_a_request_that_waits_is_told_of_the_end(shop, monkeypatch):
    monkeypatch.setattr(session, "_PATIENCE", 20.0)
    name = start(shop, paused=True)
    frames(shop, name, 1)
    replies = []
    asking = threading.Thread(target=lambda: replies.append(shop.call("frame", {"session": name, "after": 1}).content))
    asking.start()
    wait_until(lambda: shop._sessions[name].asked == math.inf)
    shop.call("command", {"session": name, "command": "stop"})
    asking.join()
    assert replies[0]["ended"] == "Training was stopped."
    with pytest.raises(UnknownSession, match="start again"):
        shop.call("frame", {"session": name})


def test_a_page_that_asks_no_more_has_its_training_ended(shop, monkeypatch):
    gone, there = start(shop), start(shop)
    frames(shop, gone, 1)
    shop._sessions[gone].asked -= workshop.IDLE_SECONDS
    wait_until(lambda: gone not in shop._sessions)
    assert frames(shop, there, 1)[0]["ended"] == ""
    with pytest.raises(UnknownSession):
        shop.call("frame", {"session": gone})
    monkeypatch.setattr(workshop, "IDLE_SECONDS", 0.0)
    wait_until(lambda: not shop._sessions)


def test_starting_again_replaces_the_session_unless_it_fails(shop):
    first = start(shop)
    old = shop.call("start", {"settings": SMALL, "replaces": first}).content["session"]
    assert list(shop._sessions) == [old]
    with pytest.raises(UserError, match="width"):
        shop.call("start", {"settings": {**SMALL, "width": 0}, "replaces": old})
    huge = {"networks": 4096, "depth": 6, "width": 32}
    with pytest.raises(UserError, match=r"these networks need \d+ MB; the limit is 256 MB"):
        shop.call("start", {"settings": {**SMALL, **huge}, "replaces": old})
    assert frames(shop, old, 1)[0]["ended"] == ""


def test_so_many_pages_and_no_more(shop):
    names = [start(shop, paused=True) for _ in range(SESSIONS)]
    with pytest.raises(UserError, match="8 pages are training; the limit is 8, so close one of them"):
        start(shop)
    shop.call("start", {"settings": {**SMALL, "paused": True}, "replaces": names[1]})
    shop.call("command", {"session": names[0], "command": "stop"})
    start(shop, paused=True)


@pytest.fixture
def making(monkeypatch):
    """A session that is being created waits: `begun` says so, and `go` releases it."""
    waits = SimpleNamespace(begun=threading.Event(), go=threading.Event())

    def made(task, settings):
        waits.begun.set()
        assert waits.go.wait(20)
        return Session(task, settings)

    monkeypatch.setattr(workshop, "Session", made)
    yield waits
    waits.go.set()


def starting(shop, replies):
    """Return a thread that starts a session, and appends the status and the reply."""
    page = threading.Thread(target=lambda: replies.append(shop.answer("start", {"settings": SMALL})))
    page.start()
    return page


def test_pages_that_start_at_once_count_each_other(shop, monkeypatch, making):
    monkeypatch.setattr(workshop, "SESSIONS", 1)
    replies = []
    pages = [starting(shop, replies) for _ in "ab"]
    assert making.begun.wait(20)
    making.go.set()
    for page in pages:
        page.join()
    assert sorted(status for status, _ in replies) == [200, 400]


def test_the_end_waits_for_no_start_and_each_is_told(shop, making):
    replies, ends = [], []
    first = starting(shop, replies)
    assert making.begun.wait(20)
    second = starting(shop, replies)  # waits for the first
    end = threading.Thread(target=lambda: ends.append(shop.close()))
    end.start()
    end.join(10)
    assert ends == [None]
    making.go.set()
    first.join()
    second.join()
    assert sorted(status for status, _ in replies) == [200, 400]
    assert [made.ended for made in shop._sessions.values()] == [workshop.ENDED]


def test_the_end_does_not_wait_for_a_long_step(shop, monkeypatch):
    begun, go = threading.Event(), threading.Event()
    monkeypatch.setattr(session, "advance_all", lambda trainings, steps: (begun.set(), go.wait(20)))
    monkeypatch.setattr(workshop, "LEAVE", 0.1)
    start(shop)
    assert begun.wait(20)
    shop.close()
    assert shop._thread.is_alive()
    go.set()
    shop._thread.join(20)


def test_a_session_that_has_ended_is_freed_at_once(shop):
    gc.collect()
    gc.disable()  # large arrays do not make Python look for cycles
    try:
        started = start(shop, target={"kind": "paper", "name": "saddle"})
        frames(shop, started, 3)
        shop.call("export", {"session": started, "activation": "plu", "format": "json"})
        made = weakref.ref(shop._sessions[started])
        shop.call("command", {"session": started, "command": "stop"})
        wait_until(lambda: made() is None, seconds=10)
    finally:
        gc.enable()


def test_all_together_have_a_limit_of_memory(shop, monkeypatch):
    monkeypatch.setattr(workshop, "MOST_MEMORY", 1)
    for module in (workshop, session):
        monkeypatch.setattr(module, "estimate_memory", lambda task, settings: 1)
    for _ in range(4):
        start(shop, paused=True)
    with pytest.raises(UserError, match="need too much memory"):
        start(shop)


def test_two_pages_take_turns_of_equal_time(shop, monkeypatch):
    turns = []
    monkeypatch.setattr(Session, "round", lambda made, seconds: turns.append((made, seconds)) or time.sleep(0.001))
    start(shop)
    start(shop, networks=512)
    wait_until(lambda: len(turns) > 50)
    late = turns[-20:]
    assert {seconds for _, seconds in late} == {workshop.ROUND / 2}
    assert [one for one, _ in late] == [late[0][0], late[1][0]] * 10
    assert late[0][0] is not late[1][0]


def test_after_a_pause_the_frame_and_the_files_are_of_the_last_step(shop):
    name = start(shop)
    step = frames(shop, name, 3)[-1]["step"]
    wait_until(lambda: shop._sessions[name]._trainings[0].step > step + 100)  # training continues without requests
    shop.call("command", {"session": name, "command": "pause"})
    file = shop.call("export", {"session": name, "activation": "plu", "format": "json"}).content["name"]
    step = shop._sessions[name]._trainings[0].step
    frame = numbered(shop, name)
    assert (frame["step"], frame["panels"][0]["losses"]["steps"][-1], file) == (step, step, f"plu_{step}.json")


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, [True] * 5), (1e9, [True] + [False] * 4)])
def test_numbers_come_now_and_then_and_with_a_pause(shop, monkeypatch, seconds, expected):
    monkeypatch.setattr(session, "SLOWLY", seconds)
    name = start(shop)
    assert ["losses" in frame["panels"][0] for frame in frames(shop, name, 5)] == expected
    shop.call("command", {"session": name, "command": "pause"})
    training = shop._sessions[name]._trainings[0]
    wait_until(lambda: numbered(shop, name)["panels"][0]["losses"]["steps"][-1] == training.step)


def test_a_training_that_fails_ends_alone(shop, monkeypatch):
    good = start(shop)
    bad = start(shop, networks=17)
    advance = session.advance_all

    def fail(trainings, steps):
        if trainings[0].snapshot().theta.shape[1] == 17:
            raise FloatingPointError("no luck")
        advance(trainings, steps)

    monkeypatch.setattr(session, "advance_all", fail)
    wait_until(lambda: shop.call("frame", {"session": bad, "after": 10**6}).content["ended"])
    assert "Training failed: FloatingPointError: no luck" in shop.call("frame", {"session": bad}).content["ended"]
    assert frames(shop, good, 2)[-1]["ended"] == ""


def test_a_fault_of_ours_is_answered_too(shop, monkeypatch):
    monkeypatch.setattr(workshop, "task_of", lambda target: 1 / 0)
    status, reply = shop.answer("start", {"settings": SMALL})
    assert (status, reply.content) == (500, {"error": "plunit failed: ZeroDivisionError: division by zero"})


WRONG = [
    ("frame", {"after": -1}, "after must be a whole number"),
    ("command", {"command": "rm"}, "unknown command 'rm'"),
    ("export", {"activation": "tanh", "format": "c"}, "unknown activation 'tanh'; choose one of relu, plu"),
    ("export", {"activation": "plu", "format": "exe"}, "unknown format 'exe'"),
]


def test_messages(shop):
    name = start(shop, paused=True)
    assert shop.answer("eval", {})[1].content["error"].startswith("unknown call 'eval'; choose one of info, start")
    for kind, body, message in WRONG:
        status, reply = shop.answer(kind, {"session": name, **body})
        assert (status, message in reply.content["error"], "\n" in reply.content["error"]) == (400, True, False)
    statuses = [shop.answer("frame", {"session": other})[0] for other in ("", "nobody", None, 7, ["x"], {})]
    assert statuses == [404] * 6


def test_info_tells_the_limits_that_are_checked(shop):
    info = shop.call("info", {}).content
    assert info["limits"] == {"networks": 4096, "points": 10**6, "body": 10**7, "sessions": 8}
    assert {one["name"] for one in info["activations"] if not one["piecewise"]} == {"tanh", "gelu", "silu", "elu"}
    titles = [one["title"] for one in info["activations"]]
    assert titles[:4] == ["tanh", "ReLU", "PLU", "learned PLU"]
    assert {one["name"] for one in info["activations"]} == set(ACTIVATIONS)
    defaults = json.loads(json.dumps(info["defaults"]))
    assert shop.call("start", {"settings": defaults}).content["problem"]["widths"] == (1, 3, 3, 1)


def test_a_page_that_waits_for_a_slow_frame_keeps_its_session(shop, monkeypatch):
    paint = session.Painter.paint

    def slowly(painter, snapshots, numbers):
        with monkeypatch.context() as patch:  # sessions for which no page waits would end now
            patch.setattr(workshop, "IDLE_SECONDS", 0.0)
            time.sleep(0.3)
        return paint(painter, snapshots)

    monkeypatch.setattr(session.Painter, "paint", slowly)
    name = start(shop)
    assert [frame["ended"] for frame in frames(shop, name, 2)] == ["", ""]
