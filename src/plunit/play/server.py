"""The page and its calls over HTTP, on loopback only."""

from __future__ import annotations

import contextlib
import hmac
import io
import json
import secrets
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from plunit.play.frames import Reply
from plunit.play.workshop import BODY, Workshop

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
TIMEOUT = 10.0  # seconds for a request to arrive: its head, and then its body
CONNECTIONS = 64  # at once
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; "
    "object-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FULL = json.dumps({"error": "too many connections are open; close a page of plunit play"})
_ABOUT = {"Content-Type": "application/json", "Content-Length": len(_FULL), "Connection": "close", **HEADERS}
FULL = "\r\n".join(
    ["HTTP/1.1 503 Service Unavailable", *(f"{key}: {_ABOUT[key]}" for key in _ABOUT), "", _FULL]
).encode()


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return path -> type and content of each file of the page."""
    files = (resources.files("plunit.play") / "page").iterdir()
    kinds = {file: _TYPES.get(file.name.rpartition(".")[2]) for file in files}
    found = {f"/{file.name}": (f"{kind}; charset=utf-8", file.read_bytes()) for file, kind in kinds.items() if kind}
    return {**found, "/": found["/index.html"]}


def pack_reply(reply: Reply) -> bytes:
    """Return a reply as bytes: the length of its JSON (uint32, little endian), the JSON, the payload."""
    text = json.dumps(reply.content, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)  # arrays in the payload begin at multiples of four
    return len(text).to_bytes(4, "little") + text + reply.payload


class Server(ThreadingHTTPServer):
    """Serves the page to anyone on this machine, and its calls to whoever has the token."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would let another program share the port

    def __init__(self, port: int = 0) -> None:
        self.token, self.workshop, self.files = secrets.token_urlsafe(24), Workshop(), page_files()
        super().__init__(("127.0.0.1", port), Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in ("localhost", "127.0.0.1", "[::1]")}
        self._free = threading.BoundedSemaphore(CONNECTIONS)

    def server_bind(self) -> None:
        """Bind without resolving the names of this machine, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://127.0.0.1:{self.server_port}/#token={self.token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a new thread, or refuse it if there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            with contextlib.suppress(OSError):
                request.sendall(FULL)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a page may be closed in the middle of a reply."""

    def server_close(self) -> None:
        """Stop training, and listening."""
        self.workshop.close()
        super().server_close()


class Refused(Exception):
    """A refused request: a status and a reason."""


class Arrival(io.RawIOBase):
    """The bytes of a connection; reading raises TimeoutError after `late`, even while bytes arrive."""

    def __init__(self, connection: Any, seconds: float) -> None:
        self.connection, self.seconds, self.late = connection, seconds, 0.0

    def expect(self) -> None:
        """Start the deadline of a head or a body."""
        self.late = time.monotonic() + self.seconds

    def readable(self) -> bool:
        """Whether bytes can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        if (left := self.late - time.monotonic()) <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        try:
            return int(self.connection.recv_into(buffer))
        finally:
            self.connection.settimeout(self.seconds)  # of replies


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version, server_version, sys_version = "HTTP/1.1", "plunit", ""
    default_request_version = "HTTP/1.0"  # not 0.9, whose answers have no headers
    timeout, disable_nagle_algorithm = TIMEOUT, True

    def setup(self) -> None:
        """Read from the connection, with a deadline for each head and body."""
        super().setup()
        self.rfile.close()
        self.arrival = Arrival(self.connection, self.timeout)
        self.rfile = io.BufferedReader(self.arrival)

    def handle_one_request(self) -> None:
        """Wait for a request and answer it."""
        self.arrival.expect()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Send a file of the page."""
        self._answer(self._file)

    def do_POST(self) -> None:
        """Answer a call."""
        self._answer(self._call)

    def _answer(self, work: Callable[[], tuple[int, str, bytes]]) -> None:
        try:
            self._check_sender()
            self._send(*work())
        except Refused as refused:
            self.send_error(*refused.args)

    def _check_sender(self) -> None:
        hosts = self.server.hosts
        if [host.lower() for host in self.headers.get_all("Host", [])] not in [[host] for host in hosts]:
            raise Refused(403, "wrong Host; open the address that plunit play prints")
        ours = {f"http://{host}" for host in hosts}
        if not ours.issuperset(origin.lower() for origin in self.headers.get_all("Origin", [])):
            raise Refused(403, "wrong Origin; other pages may not send requests")

    def _file(self) -> tuple[int, str, bytes]:
        if self.path not in self.server.files:
            raise Refused(404, "page not found")
        return 200, *self.server.files[self.path]

    def _call(self) -> tuple[int, str, bytes]:
        if not hmac.compare_digest(self.headers.get("X-Plunit-Token", "").encode(), self.server.token.encode()):
            raise Refused(403, "wrong token; open the address that plunit play prints")
        if not self.path.startswith("/call/"):
            raise Refused(404, "call not found")
        try:
            body = json.loads(self._body())
        except (ValueError, RecursionError):
            raise Refused(400, "the body of a call must be JSON") from None
        status, reply = self.server.workshop.answer(self.path.removeprefix("/call/"), body)
        if status != 200:
            return status, "application/json", json.dumps(reply.content).encode()
        return status, "application/octet-stream", pack_reply(reply)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            raise Refused(411, "a call needs a Content-Length")
        if len(length) > 9 or int(length) > BODY:
            raise Refused(413, f"a call may have at most {BODY:,} bytes; this one has {length[:20]}")
        self.arrival.expect()
        try:
            body = self.rfile.read(int(length))
        except TimeoutError:
            body = b""
        if len(body) < int(length):
            raise Refused(408, f"the body of a call did not arrive within {self.timeout:g} s")
        return body

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send {"error": one line}, and end the connection: its body may not have been read."""
        self.close_connection = True
        self._send(code, "application/json", json.dumps({"error": message or "wrong request"}).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        about = {"Content-Type": kind, "Content-Length": str(len(content)), **HEADERS}
        for name, value in {**about, **({"Connection": "close"} if self.close_connection else {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal shows the address."""


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Yield a server on a free port that serves in a thread; at the end stop both."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="plunit server")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
