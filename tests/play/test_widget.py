"""The messages of the notebook's widget, without a browser."""

import json
import queue
import re
import subprocess
import sys
import threading

import pytest

pytest.importorskip("anywidget")

import plunit.play
from plunit.play import session
from plunit.play.server import page_files
from plunit.play.widget import PARTS, one_module

SMALL = {"target": {"kind": "paper", "name": "sine"}, "networks": 8, "activations": ["plu"]}


class Front:
    """The page's side: sends messages and waits for their answers."""

    def __init__(self, widget):
        self.widget, self.answers, self.count = widget, queue.Queue(), 0
        widget.send = lambda content, buffers=None: self.answers.put((content, buffers))

    def __call__(self, kind, body):
        self.count += 1
        self.widget._handle_custom_msg({"id": self.count, "kind": kind, "body": body}, [])
        content, buffers = self.answers.get(timeout=120)
        json.dumps(content, allow_nan=False)
        assert content["id"] == self.count
        return content, buffers


@pytest.fixture
def front():
    widget = plunit.play.Widget()
    yield Front(widget)
    widget.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "plunit play"]


def test_a_session_by_messages(front):
    started, _ = front("start", {"settings": SMALL})
    name, after = started["json"]["session"], 0
    for _ in range(3):
        frame, buffers = front("frame", {"session": name, "after": after})
        assert frame["json"]["frame"] == after + 1
        after = frame["json"]["frame"]
        image = frame["json"]["panels"][0]["image"]
        assert len(buffers[0]) == image["width"] * image["height"]
    file, buffers = front("export", {"session": name, "activation": "plu", "format": "torch"})
    assert re.fullmatch(r"plu_\d+_torch\.py", file["json"]["name"])
    compile(buffers[0], "torch", "exec")
    assert front("command", {"session": name, "command": "stop"})[0]["json"]["paused"] is True


@pytest.mark.parametrize(
    ("kind", "body", "status", "error"),
    [
        ("start", {}, 400, "the call start needs a field 'settings'"),
        ("frame", {"session": "x"}, 404, "this training has ended"),
        (None, None, 400, "unknown call 'None'"),
    ],
)
def test_an_error_is_a_message(front, kind, body, status, error):
    content, buffers = front(kind, body)
    assert (content["status"], buffers) == (status, None)
    assert error in content["error"]
    for message in (None, [], "start", 3):  # no object
        front.widget._handle_custom_msg(message, [])
        assert front.answers.get(timeout=120)[0]["status"] == 400


def test_the_kernel_does_not_wait_for_a_frame(front, monkeypatch):
    monkeypatch.setattr(session, "_PATIENCE", 120.0)
    name = front("start", {"settings": {**SMALL, "paused": True}})[0]["json"]["session"]
    front("frame", {"session": name})
    front.widget._handle_custom_msg({"id": 0, "kind": "frame", "body": {"session": name, "after": 1}}, [])
    assert front.answers.empty()  # the call has returned, and the frame comes after the next step
    front.widget._handle_custom_msg({"id": 1, "kind": "command", "body": {"session": name, "command": "step"}}, [])
    found = dict(front.answers.get(timeout=120)[0].values() for _ in "ab")
    assert (found[0]["frame"], found[0]["step"], found[1]["paused"]) == (2, 1, True)


def test_a_widget_that_is_forgotten_ends_its_training(front):
    front("start", {"settings": SMALL})
    shop, end = front.widget._workshop, front.widget._end
    front.widget.close()
    assert (end.alive, shop._closed) == (False, True)


def test_the_module_is_whole():
    text = one_module(page_files())
    assert re.findall(r"^(import .*|export (?!default).*)$", text, flags=re.MULTILINE) == []
    assert re.findall(r"^export default .*$", text, flags=re.MULTILINE) == ["export default { render };"]
    assert {f"/{name}.js" for name in (*PARTS, "boot")} == {path for path in page_files() if path.endswith(".js")}


def test_the_markup_is_the_pages(front):
    assert front.widget.markup.strip().startswith('<div class="plunit-play">')
    assert front.widget.markup in page_files()["/"][1].decode()


def test_without_anywidget_the_extra_is_named():
    code = "import sys; sys.modules['anywidget'] = None; import plunit.play; plunit.play.Widget"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "plunit.play.Widget needs anywidget, which is not installed; pip install 'plunit[notebook]'" in run.stderr
