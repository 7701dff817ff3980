"""Four thousand random requests: nothing is executed, and each has an answer."""

import io
import json
import random

from calls import SINE, called

from plunit.play import server as module
from plunit.play import workshop
from plunit.play.server import Handler


class Wire:
    """A connection in memory: what is sent to the server, and what the server sends."""

    def __init__(self, content):
        self.content, self.sent = io.BytesIO(content), b""
        self.recv_into = self.content.readinto

    def makefile(self, *_):
        return io.BytesIO()

    def sendall(self, content):
        self.sent += bytes(content)

    def settimeout(self, *_):
        pass

    setsockopt = gettimeout = settimeout


PLAIN = "GET POST PUT / // /call/ start info frame export command HTTP/1.1 HTTP/0.9 HTTP/9999999.1 10 -1 : %2e .. { } ["
STRANGE = ' |\r\n|\n|\r|\0|Host: |X-Plunit-Token: |Origin: |Content-Length: |99999999999999999999|]|"|\x80\xff|é'
CODE = "__import__('os').system('touch executed')"
TEXTS = "sine|saddle|sin(x)|1/x|expression|paper|drawn|csv|a,b\n1,2\n|plu|relu|x**x**x|\ud800|\0|session|pause|c||x"
NUMBERS = [None, True, False, 0, 1, -1, 3, 2**63, 10**30, 0.5, -0.0, 1e308]
WORDS = [*PLAIN.split(), *STRANGE.split("|"), "Transfer-Encoding: chunked", CODE, "a" * 70_000, "x: y\r\n" * 120]
VALUES = [*NUMBERS, *TEXTS.split("|"), "x" * 200, CODE, [], {}, [[0, 0], [1, 1]], [1, 2], ["plu", "relu"]]
TARGETS = [
    SINE,
    {"kind": "expression", "text": "x * y", "low": 0, "high": 1},
    {"kind": "drawn", "points": [[0, 0], [1, 1]]},
    {"kind": "csv", "text": "x,y\n" + "".join(f"{n},{n * n}\n" for n in range(10)), "name": "a.csv"},
]
SETTINGS = ["activations", "alpha", "c", "depth", "width", "lr", "networks", "seed", "paused", "target", "x"]
FIELDS = ["settings", "session", "after", "command", "activation", "format", "replaces", "kind", *SETTINGS]


def random_object(rng, depth=3):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(VALUES)
    return {rng.choice(FIELDS): random_object(rng, depth - 1) for _ in range(rng.randrange(6))}


def random_call(rng, site):
    """Return a call with a right head and a random body: now and then one that starts."""
    kind = rng.choice(["start", "start", "frame", "command", "export", "info", "x"])
    body = random_object(rng)
    if kind == "start" and rng.random() < 0.7:
        target = dict(rng.choice(TARGETS))
        if rng.random() < 0.5:
            target[rng.choice([*target, "x"])] = rng.choice(VALUES)
        more = {rng.choice(SETTINGS): rng.choice(VALUES)} if rng.random() < 0.9 else {}
        body = {"settings": {"target": target, **more}}
    content = json.dumps(body).encode()
    return (
        f"POST /call/{kind} HTTP/1.1\r\nHost: 127.0.0.1:{site.server_port}\r\nX-Plunit-Token: {site.token}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    ).encode() + content


def test_random_requests(idle, monkeypatch, tmp_path):
    """All are answered with a status that says what is wrong; nothing is executed, and no answer is a fault of ours."""

    class NoSession:
        asked, waiting, ended, bytes = float("inf"), True, "", 0

        def __init__(self, task, settings):
            started_.append(task)

        problem = frame = export = lambda self, *_: module.Reply({})
        command = end = lambda self, *_: {}

    rng, statuses, started_ = random.Random(0), {}, []
    monkeypatch.setattr(workshop, "Session", NoSession)
    monkeypatch.setattr(workshop, "SESSIONS", 10**6)
    monkeypatch.setattr(workshop, "MOST_MEMORY", 2**60)
    monkeypatch.chdir(tmp_path)
    for _ in range(4_000):
        if rng.random() < 0.4:
            content = "".join(rng.choices(WORDS, k=rng.randrange(1, 15))).encode("latin-1")
        else:
            content = random_call(rng, idle)
            if rng.random() < 0.3:
                cut = rng.randrange(len(content))
                content = content[:cut] + rng.choice(WORDS).encode("latin-1") + content[cut + rng.randrange(5) :]
        wire = Wire(content)
        Handler(wire, ("127.0.0.1", 1), idle)
        status = wire.sent[9:12].decode("latin-1") if wire.sent.startswith(b"HTTP/1.1 ") else "none"
        statuses[status] = statuses.get(status, 0) + 1
        assert status != "500", (content, wire.sent)
        if status != "200":
            assert idle.token.encode() not in wire.sent
    for name in list(idle.workshop._sessions):
        idle.workshop.call("command", {"session": name, "command": "stop"})
    assert {"200", "400", "403", "404", "408"} < set(statuses), statuses
    assert len(started_) > 20
    assert list(tmp_path.iterdir()) == []
    assert called(idle, "info", {})[0]["limits"]
