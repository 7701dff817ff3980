"""Sessions over HTTP: pages that come and go, and a server that stops."""

import json
import socket
import threading

import pytest
from calls import SMALL, asked, called, threads
from waiting import wait_until

from plunit.play import workshop
from plunit.play.server import serving


def test_a_session_over_http(site):
    started_, payload = called(site, "start", {"settings": {**SMALL, "target": {"kind": "paper", "name": "saddle"}}})
    assert len(payload) == 96 * 80
    name, after = started_["session"], 0
    for _ in range(3):
        frame, payload = called(site, "frame", {"session": name, "after": after})
        assert frame["frame"] == after + 1
        after = frame["frame"]
        assert sum(96 * 80 + 16 * panel["edges"]["count"] for panel in frame["panels"]) == len(payload)
    file, content = called(site, "export", {"session": name, "activation": "plu", "format": "c"})
    stem = file["name"].removesuffix(".h")
    assert stem.startswith("plu_")
    assert stem.removeprefix("plu_").isdecimal()
    assert file["mime"] == "text/x-c"
    assert f"static inline void {stem}(".encode() in content
    assert called(site, "command", {"session": name, "command": "stop"})[0]["paused"] is True
    assert called(site, "frame", {"session": name})[0] == 404


def test_a_page_closed_in_the_middle_of_training(monkeypatch, site):
    monkeypatch.setattr(workshop, "SECONDS", 0.5)
    name = called(site, "start", {"settings": SMALL})[0]["session"]
    body = json.dumps({"session": name, "after": 0}).encode()
    with socket.create_connection(("127.0.0.1", site.server_port)) as connection:
        connection.sendall(
            f"POST /call/frame HTTP/1.1\r\nHost: 127.0.0.1:{site.server_port}\r\nX-Plunit-Token: {site.token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        connection.recv(100)  # and no more: the page goes away in the middle of a frame
    wait_until(lambda: not site.workshop._sessions)
    assert called(site, "frame", {"session": name})[0] == 404


def test_two_pages_have_their_own_training(site):
    one, two = (called(site, "start", {"settings": {**SMALL, "seed": seed}})[0]["session"] for seed in (0, 1))
    frames = [called(site, "frame", {"session": name})[0] for name in (one, two)]
    assert [frame["session"] for frame in frames] == [one, two]
    assert frames[0]["panels"][0]["losses"] != frames[1]["panels"][0]["losses"]
    called(site, "command", {"session": one, "command": "stop"})
    assert called(site, "frame", {"session": one})[0] == 404
    assert called(site, "frame", {"session": two, "after": 1})[0]["ended"] == ""


def test_a_server_that_stops_in_the_middle_of_frames():
    before, replies = threads(), []

    def ask():
        name, after = called(made, "start", {"settings": SMALL})[0]["session"], 0
        try:
            while True:
                frame, _ = called(made, "frame", {"session": name, "after": after})
                if frame == 404 or frame["ended"]:
                    return replies.append("ended")
                after = frame["frame"]
        except OSError:
            replies.append("gone")

    with serving() as made:
        pages = [threading.Thread(target=ask) for _ in range(3)]
        for page in pages:
            page.start()
        wait_until(lambda: len(made.workshop._sessions) == 3)
    for page in pages:
        page.join(10)
    assert len(replies) == 3
    assert threads() == before
    with pytest.raises(ConnectionRefusedError):
        asked(made, "GET", "/")
