"""The command `plunit play`: its address, its end, its errors, and what it loads and writes."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from calls import SINE, called
from commands import run
from waiting import wait_until

from plunit.ensemble import why_not_native

PLAY = [sys.executable, "-m", "plunit.cli", "play", "--no-open"]


@pytest.fixture
def running():
    made = []

    def start(*words, program=PLAY):
        made.append(subprocess.Popen([*program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return made[-1], made[-1].stdout.readline()

    yield start
    for process in made:
        process.kill()
        process.communicate()


def test_the_address_is_served_until_ctrl_c(running):
    process, line = running()
    address = line.removeprefix("plunit play: ").strip()
    assert "/#token=" in address
    with urllib.request.urlopen(address.partition("#")[0]) as reply:
        assert b"plunit play" in reply.read()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out.splitlines()[-1], err) == (0, "plunit play: ended", "")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_trainings_that_have_ended_keep_no_memory(running):
    process, line = running()
    port, token = re.search(r":(\d+)/#token=(\S+)", line).groups()
    server = SimpleNamespace(server_port=int(port), token=token)

    def megabytes():
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]) // 1024

    def train(**settings):
        name = called(server, "start", {"settings": {"target": SINE, "activations": ["plu"], **settings}})[0]["session"]
        called(server, "frame", {"session": name})
        most = megabytes()
        called(server, "command", {"session": name, "command": "stop"})
        return most

    train(networks=16)
    first = megabytes()
    most = [train(networks=2048, depth=3, width=width) for width in (16, 20, 24, 16, 28, 24)]
    assert max(most) > first + 50  # each of them needs more than is kept
    wait_until(lambda: megabytes() < first + 60)  # without a thought for it 180 more are kept


def test_a_port_and_a_link_are_taken(running):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _, line = running("--port", str(port), "http://127.0.0.1:1/#settings=%7B%22seed%22%3A7%7D")
    assert line.startswith(f"plunit play: http://127.0.0.1:{port}/#token=")
    assert line.strip().endswith("&settings=%7B%22seed%22%3A7%7D")


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = run("play", "--no-open", "--port", port)
    assert code == 2
    assert err == f"plunit: port {port} is taken; choose another with --port, or any free one with --port 0\n"


@pytest.mark.parametrize("link", ["http://127.0.0.1:1/", "settings=%7B%7D", "#settings=<script>"])
def test_a_link_without_settings(link):
    code, _, err = run("play", "--no-open", link)
    assert (code, "has no settings; copy the link from the page" in err) == (2, True)


# what a page does, in a process that notes the files that are opened for writing
WATCHED = """
import json, os, sys
written = []
def watch(event, arguments):
    if event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(str(arguments[0]))
sys.addaudithook(watch)
from calls import called
from plunit.play.server import serving
table = {"kind": "csv", "text": "x,y\\n" + "".join(f"{n},{n * n}\\n" for n in range(20)), "name": "/tmp/x.csv"}
with serving() as server:
    for target in TARGETS + [table]:
        settings = {"target": target, "networks": 4, "activations": ["plu"]}
        name = called(server, "start", {"settings": settings})[0]["session"]
        called(server, "frame", {"session": name})
        early = sorted(sys.modules)
        for form in ("c", "onnx", "json", "torch", "fit"):
            called(server, "export", {"session": name, "activation": "plu", "format": form})
heavy = [n for n in ("torch", "matplotlib", "sklearn", "pandas", "scipy", "onnx", "jax", "anywidget") if n in early]
print(json.dumps([written, heavy]))
"""


def test_nothing_is_written_and_nothing_heavy_is_loaded(tmp_path):
    why_not_native()  # the first use of the program compiles it, into the cache
    code = WATCHED.replace("TARGETS", repr([SINE, {"kind": "paper", "name": "saddle"}])).replace(
        ', "onnx", "jax"', ', "jax"'
    )
    code = f"import sys; sys.path.insert(0, {str(sys.modules['calls'].__file__.rpartition('/')[0])!r})\n{code}"
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "[[], []]\n", done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


ABSENT = """
import sys
for name in ("torch", "matplotlib", "sklearn", "pandas", "jinja2", "filelock", "safetensors", "PIL", "anywidget"):
    sys.modules[name] = None
sys.argv = ["plunit", "play", "--no-open"]
from plunit.cli import main
main()
"""


def test_the_extra_play_suffices(running):
    process, line = running(program=[sys.executable, "-c", ABSENT])
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert line.startswith("plunit play: http://127.0.0.1:"), err
