"""The page and its calls over HTTP, on loopback only."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from plunit.errors import UserError
from plunit.play.frames import Reply
from plunit.play.workshop import BODY, UnknownSession, Workshop

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The files of the page, by their endings."""

TIMEOUT = 20.0
"""So many seconds a request may take to arrive."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return path -> type and content of each file of the page."""
    folder = resources.files("plunit.play") / "page"
    found = {}
    for file in folder.iterdir():
        kind = TYPES.get(file.name[file.name.rfind(".") :])
        if kind:
            found[f"/{file.name}"] = (f"{kind}; charset=utf-8", file.read_bytes())
    found["/"] = found["/index.html"]
    return found


def packed(reply: Reply) -> bytes:
    """Return a reply as bytes: the length of its JSON (uint32, little endian), the JSON, the payload."""
    text = json.dumps(reply.content, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)  # arrays in the payload begin at multiples of four
    return len(text).to_bytes(4, "little") + text + reply.payload


def answered(workshop: Workshop, kind: str, body: Any) -> tuple[int, Reply]:
    """Return the status of HTTP for a call, and the answer or {"error": one line}."""
    try:
        return 200, workshop.call(kind, body)
    except UserError as error:
        status, line = 400, str(error)
    except UnknownSession as error:
        status, line = 404, str(error)
    except MemoryError:
        status, line = 503, "the memory of this machine does not suffice; take fewer networks"
    return status, Reply({"error": " ".join(line.split())})


class Server(ThreadingHTTPServer):
    """Serves the page to whoever has the token."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token = secrets.token_urlsafe(24)
        self.workshop = Workshop()
        self.files = page_files()
        self.hosts = {f"{name}:{self.server_port}" for name in ("localhost", "127.0.0.1", "[::1]")}

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://127.0.0.1:{self.server_port}/#token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a page that goes away in the middle of a reply is no error."""

    def server_close(self) -> None:
        """Stop training, and listening."""
        self.workshop.close()
        super().server_close()


class Refused(Exception):
    """A request that is not answered: status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "plunit"
    sys_version = ""
    timeout = TIMEOUT
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Send a file of the page."""
        self._answer(self._file)

    def do_POST(self) -> None:
        """Answer a call."""
        self._answer(self._call)

    def _answer(self, work: Any) -> None:
        try:
            self._check_origin()
            self._send(*work())
        except Refused as refused:
            self._fail(refused.status, str(refused))

    def _check_origin(self) -> None:
        hosts = self.server.hosts
        if self.headers.get("Host", "").lower() not in hosts:
            raise Refused(403, "wrong Host: open the address that plunit play prints")
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in hosts}:
            raise Refused(403, "wrong Origin: another page may not ask")

    def _file(self) -> tuple[int, str, bytes]:
        path = self.path.partition("?")[0]
        if path not in self.server.files:
            raise Refused(404, "there is no such page")
        return (200, *self.server.files[path])

    def _call(self) -> tuple[int, str, bytes]:
        if not hmac.compare_digest(self.headers.get("X-Plunit-Token", "").encode(), self.server.token.encode()):
            raise Refused(403, "wrong token: open the address that plunit play prints")
        if not self.path.startswith("/call/"):
            raise Refused(404, "there is no such call")
        body = self._body()
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise Refused(400, "the body of a call must be JSON") from None
        status, reply = answered(self.server.workshop, self.path.removeprefix("/call/"), given)
        if status != 200:
            raise Refused(status, reply.content["error"])
        return 200, "application/octet-stream", packed(reply)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self.close_connection = True
            raise Refused(411, "a call needs a Content-Length")
        if len(length) > 9 or int(length) > BODY:
            self.close_connection = True
            raise Refused(413, f"a call may have {BODY:,} bytes, this one has {length[:20]}")
        try:
            body = self.rfile.read(int(length))
        except TimeoutError:
            self.close_connection = True
            raise Refused(408, f"the body of a call did not arrive within {TIMEOUT:g} s") from None
        return body

    def _fail(self, status: int, reason: str) -> None:
        self._send(status, "application/json", json.dumps({"error": reason}).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal shows the address."""


def started(port: int = 0) -> tuple[Server, threading.Thread]:
    """Return a server and the thread in which it serves."""
    server = Server(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="plunit server")
    thread.start()
    return server, thread
