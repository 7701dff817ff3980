"""The server does what its page asks, and nothing for anybody else."""

import contextlib
import json
import re
import select
import socket
import threading

import pytest
from calls import SMALL, asked, called, raw, threads
from waiting import wait_until

from plunit.play import server as module
from plunit.play.frames import Reply
from plunit.play.server import HEADERS, Handler, Server, serving


def head(server, *more, path="info", length=None):
    """Return the head of a call as a page sends it, with other headers after its own."""
    lines = [f"POST /call/{path} HTTP/1.1", f"Host: 127.0.0.1:{server.server_port}", f"X-Plunit-Token: {server.token}"]
    lines += [*more, *([] if length is None else [f"Content-Length: {length}"])]
    return "".join(line + "\r\n" for line in [*lines, ""]).encode(errors="replace")


def test_it_listens_on_loopback_only_and_its_address_has_a_token_of_its_own(idle):
    assert idle.socket.getsockname()[0] == "127.0.0.1"
    assert idle.address == f"http://127.0.0.1:{idle.server_port}/#token={idle.token}"
    assert len(idle.token) >= 32
    with Server() as other:
        assert other.token != idle.token


@pytest.mark.parametrize("path", ["/", "/index.html", "/boot.js", "/style.css"])
def test_the_page_needs_no_token(idle, path):
    status, headers, content = asked(idle, "GET", path, X_Plunit_Token=None)
    assert (status, headers["Content-Type"].partition("; ")[2]) == (200, "charset=utf-8")
    assert content == idle.files[path][1]


def test_one_connection_serves_many_calls(idle):
    found = raw(idle, (head(idle, length=2) + b"{}") * 2 + head(idle, "Connection: close", length=2) + b"{}")
    assert found.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_our_own_hosts_are_served(idle, host):
    named = host.format(port=idle.server_port)
    assert asked(idle, "POST", "/call/info", b"{}", Host=named, Origin=f"http://{named}")[0] == 200


def locked_down(headers):
    return (
        headers.items() >= HEADERS.items()
        and headers["Cache-Control"] == "no-store"
        and not [name for name in headers if name.lower().startswith("access-control")]
        and "Python" not in headers["Server"]
    )


HOSTS = [
    *("evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1.:{port}"),
    *("localhost.evil.example:{port}", "0.0.0.0:{port}", "127.0.0.2:{port}", "[::]:{port}"),
    *("127.0.0.1:{port}@evil.example", "", None),
]
ORIGINS = ["http://evil.example", "null", "", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://localhost:1"]
TOKENS = [None, "", "x", "{token} ", "{token}x", "token", "{token:.31}", "ÿ"]
PATHS = [
    *("/../server.py", "/page/../../server.py", "/..%2fserver.py", "/%2e%2e/server.py", "//etc/passwd", "/etc/passwd"),
    *("/..\\server.py", "/index.html/", "/index.html%00", "/INDEX.HTML", "/index.html?x=1", "/server.py"),
    *("/page/index.html", "http://evil.example/", "*", "/" + "a" * 5000),
]
METHODS = ["HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "X" * 100]
NO_JSON = [b"{", b'"\xff"', b"[" * 100_000, b"9" * 10_000, b""]
PAGE, CALL = ("GET", "/", None), ("POST", "/call/info", b"{}")
REFUSED = [
    *((*ask, {"Host": host}, 403, "wrong Host; open the address") for host in HOSTS for ask in (PAGE, CALL)),
    *((*ask, {"Origin": origin}, 403, "") for origin in ORIGINS for ask in (PAGE, CALL)),
    *((*CALL, {"X_Plunit_Token": token}, 403, "wrong token; ") for token in TOKENS),
    *(("GET", path, None, {}, 404, "page not found") for path in (*PATHS, "/call/info")),
    *((method, "/call/info", b"{}", {}, 501, "") for method in METHODS),
    *(("POST", path, b"{}", {}, 404, "") for path in ("/", "/start", "/call", "/callinfo")),
    *(("POST", path, b"{}", {}, 400, "unknown call") for path in ("/call/../call/info", "/call/info/", "/call/")),
    *(("POST", "/call/info", body, {}, 400, "the body of a call must be JSON") for body in NO_JSON),
    ("POST", "/call/info", b"[]", {}, 400, "the call info must be an object, got list"),
    *((*CALL, {"Content_Length": size}, 413, "may have at most 10,000,000 bytes") for size in ("10000001", "9" * 30)),
]


@pytest.mark.parametrize(("method", "path", "body", "given", "status", "error"), REFUSED)
def test_what_is_refused(idle, method, path, body, given, status, error):
    named = {"port": idle.server_port, "token": idle.token}
    found, headers, content = asked(idle, method, path, body, **{k: v and v.format(**named) for k, v in given.items()})
    assert (found, locked_down(headers)) == (status, True)
    assert method == "HEAD" or error in json.loads(content)["error"]


@pytest.mark.parametrize("ask", [PAGE, CALL])
def test_what_is_answered_is_locked_down_too(idle, ask):
    _, headers, _ = asked(idle, *ask)
    assert locked_down(headers)
    policy = headers["Content-Security-Policy"]
    assert all(word in policy for word in ("default-src 'self'", "frame-ancestors 'none'"))
    assert "unsafe" not in policy


STRANGE = {
    "no request": b"garbage\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "wrong version": b"GET / HTTP/x\r\n\r\n",
    "new version": b"GET / HTTP/2.0\r\n\r\n",
    "long line": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: evil.example\r\n\r\n",
}


@pytest.mark.parametrize("content", STRANGE.values(), ids=STRANGE)
def test_what_is_no_request_gets_the_same_headers(idle, content):
    head, _, body = raw(idle, content.replace(b"PORT", b"%d" % idle.server_port)).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert re.match("HTTP/1.1 (4|5)", first)
    assert dict(line.split(": ", 1) for line in lines).items() >= HEADERS.items()
    assert set(json.loads(body)) == {"error"}


@pytest.mark.parametrize("length", [None, "-1", "x", "1e3", "٣", "0x10", " "])
def test_a_body_needs_a_length(idle, length):
    assert raw(idle, head(idle, length=length) + b"{}").startswith(b"HTTP/1.1 411")


@pytest.mark.parametrize(
    ("status", "old", "new"),
    [
        (411, "\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (403, "Host: ", "Host: x"),
        (403, "Token: ", "Token: x"),
    ],
)
def test_the_body_of_a_refused_call_is_no_request(idle, status, old, new):
    inner = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{idle.server_port}\r\n\r\n".encode()
    found = raw(idle, head(idle, length=len(inner)).replace(old.encode(), new.encode()) + inner)
    assert (found.startswith(b"HTTP/1.1 %d" % status), found.count(b"HTTP/1.1")) == (True, 1)


def test_ten_megabytes_arrive(site):
    text = "x,y\n1,2\n" + "0.123456,0.654321\n" * 520_000
    body = json.dumps({"settings": {**SMALL, "target": {"kind": "csv", "text": text}}}).encode()
    assert 9_800_000 < len(body) < 10_000_000
    status, _, content = asked(site, "POST", "/call/start", body)
    assert status == 200, content
    assert b"Each step uses 128 of the rows" in content


def given_up(connection, drip):
    """Return the reply of the server to a connection on which a byte arrives now and then."""
    for _ in range(600):
        if select.select([connection], [], [], 0.1)[0]:
            return connection.recv(65536)
        if drip:
            connection.sendall(b"1")
    pytest.fail("it keeps waiting")


def connected(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=60)


@pytest.mark.parametrize("drip", [False, True])
def test_a_slow_body_is_given_up(monkeypatch, site, drip):
    monkeypatch.setattr(Handler, "timeout", 0.5)
    with connected(site) as connection:
        connection.sendall(head(site, length=1000) + b"1")
        assert given_up(connection, drip).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(("begun", "drip"), [(b"", False), (b"GET / HT", True), (b"GET / HTTP/1.1\r\nX: ", True)])
def test_a_slow_head_is_given_up(monkeypatch, site, begun, drip):
    monkeypatch.setattr(Handler, "timeout", 0.5)
    with connected(site) as connection:
        connection.sendall(begun)
        assert given_up(connection, drip) == b""


def test_each_wait_for_bytes_is_what_is_left_until_the_deadline(monkeypatch):
    class Quiet:
        def settimeout(self, seconds):
            limits.append(seconds)

        def recv_into(self, buffer):
            return 0

    limits, now = [], iter([100.0, 104.0, 110.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    arrival = module.Arrival(Quiet(), 10.0)
    arrival.expect()
    arrival.readinto(bytearray(1))
    assert limits == [6.0, 10.0]  # the last one is for the reply
    with pytest.raises(TimeoutError):
        arrival.readinto(bytearray(1))


@pytest.fixture
def crowded(monkeypatch):
    """A server for three connections at once."""
    monkeypatch.setattr(module, "CONNECTIONS", 3)
    with serving() as server:
        yield server


def test_connections_that_send_nothing_make_room_at_their_deadline(crowded, monkeypatch):
    monkeypatch.setattr(Handler, "timeout", 0.5)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(connected(crowded)).sendall(b"GET / HT")
        wait_until(lambda: not crowded._free._value)
        wait_until(lambda: crowded._free._value == 3)
        assert called(crowded, "info", {})[0]["limits"]


def test_so_many_calls_and_no_more(crowded, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(crowded.workshop, "answer", lambda kind, body: (200, Reply({"waited": over.wait(20)})))
    replies = []
    pages = [threading.Thread(target=lambda: replies.append(called(crowded, "frame", {})[0])) for _ in range(3)]
    try:
        for page in pages:
            page.start()
        wait_until(lambda: not crowded._free._value)
        with connected(crowded) as one_more:
            refusal, body = one_more.recv(5000).decode().split("\r\n\r\n")
    finally:
        over.set()
        for page in pages:
            page.join()
    first, *lines = refusal.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first == "HTTP/1.1 503 Service Unavailable"
    assert int(headers["Content-Length"]) == len(body)
    assert headers.items() >= HEADERS.items()
    assert "too many connections are open; close a page" in json.loads(body)["error"]
    assert replies == [{"waited": True}] * 3
    wait_until(lambda: asked(crowded, "GET", "/")[0] == 200)


# Sessions over HTTP: pages that come and go, and a server that stops


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
    assert (re.fullmatch(r"plu_\d+\.h", file["name"]) is not None, file["mime"]) == (True, "text/x-c")
    assert f"static inline void {file['name'][:-2]}(".encode() in content
    assert called(site, "command", {"session": name, "command": "stop"})[0]["paused"] is True
    assert called(site, "frame", {"session": name})[0] == 404


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
        page.join()
    assert len(replies) == 3
    assert threads() == before
    with pytest.raises(ConnectionRefusedError):
        asked(made, "GET", "/")
