"""The playground: frames a second, training with and without a page, and the first frame.

1,000 networks 1-3-3-1 each of tanh, ReLU and PLU learn the paper's sine. Without a page they are trained in long parts.
A page is Chromium without a window, where there is one, and a program that asks for frames and draws nothing. Bars: 25
frames a second, 80 % of the steps a second, 1.5 s from the command to the first frame.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from benchmarks.timing import Bar, show
from plunit.play import session as sessions
from plunit.play.live_training import advance_all
from plunit.play.server import Server, serving
from plunit.play.session import _trainings
from plunit.play.targets import settings_of, task_of

SETTINGS = {"target": {"kind": "paper", "name": "sine"}, "activations": ["tanh", "relu", "plu"], "networks": 1000}
SECONDS = 5.0
ROUNDS = 3
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")

CLIENT = """
import json, sys, time, urllib.request
base, token = sys.argv[1].split("/#token=")
def call(kind, body):
    headers = {"X-Plunit-Token": token, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{base}/call/{kind}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        content = reply.read()
    return json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])
session, after = call("start", {"settings": json.loads(sys.argv[2])})["session"], 0
while True:
    after = call("frame", {"session": session, "after": after})["frame"]
    print(after, flush=True)
"""


def alone() -> float:
    """Return the steps a second of training without a page, all activations at once."""
    settings = settings_of(SETTINGS)
    trainings = _trainings(task_of(settings.target), settings, 0)
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        advance_all(trainings, 250)
        steps += 250
    return steps / (time.perf_counter() - start)


@contextmanager
def program(server: Server) -> Iterator[None]:
    """Ask for frames in another process."""
    words = [sys.executable, "-c", CLIENT, server.address, json.dumps(SETTINGS)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        try:
            yield
        finally:
            client.kill()


@contextmanager
def chromium(server: Server) -> Iterator[None]:
    """Open the page in a browser without a window."""
    where = next(filter(None, map(shutil.which, NAMES)))
    # a program that drives the browser would take processor time from it
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [where, "--headless", "--no-sandbox", f"--user-data-dir={profile}", "--window-size=1200,900", *QUIET]
        address = f"{server.address}&settings={quote(json.dumps(SETTINGS))}"
        with subprocess.Popen([*words, address], stderr=subprocess.DEVNULL, start_new_session=True) as browser:
            try:
                yield
            finally:
                os.killpg(browser.pid, signal.SIGKILL)


def with_page(page: Callable[[Server], Any]) -> tuple[float, float]:
    """Return frames and steps a second while a page shows them."""
    sessions.WATCHED = 0  # training is not slowed down for watching
    with serving() as server, page(server):
        while not server.workshop._sessions:
            time.sleep(0.05)
        time.sleep(1.5)
        (session,) = server.workshop._sessions.values()
        start, frames, step = time.perf_counter(), session._painter.frames, session._trainings[0].step
        time.sleep(SECONDS)
        spent = time.perf_counter() - start
        return (session._painter.frames - frames) / spent, (session._trainings[0].step - step) / spent


def first_frame() -> float:
    """Return the seconds from the command to the first frame of a program that waits for its address."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "plunit.cli", "play", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("plunit play: ").strip()
        words = [sys.executable, "-c", CLIENT, address, json.dumps(SETTINGS)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
            assert client.stdout is not None
            client.stdout.readline()
            spent = time.perf_counter() - start
            client.kill()
        server.terminate()  # a job in the background may ignore SIGINT
    return spent


def painting() -> float:
    """Return the milliseconds of processor time that a frame takes in Python."""
    from plunit.play.frames import Painter

    settings = settings_of(SETTINGS)
    task = task_of(settings.target)
    trainings = _trainings(task, settings, 0)
    painter = Painter(task, settings, [training.snapshot() for training in trainings])
    times = []
    for _ in range(60):
        advance_all(trainings, 5)
        snapshots = [training.snapshot() for training in trainings]
        start = time.thread_time()
        painter.paint(snapshots)
        times.append(time.thread_time() - start)
        time.sleep(0.01)
    return 1000 * statistics.mean(times)


def main() -> None:
    """Print the table."""
    print(f"the playground, 3 x 1000 networks 1-3-3-1, {len(os.sched_getaffinity(0))} processors")
    pages: dict[str, Any] = {"a program that asks for frames": program}
    if any(map(shutil.which, NAMES)):
        pages["Chromium"] = chromium
    for name, page in pages.items():
        pairs = []
        for _ in range(ROUNDS):
            steps = alone()
            frames, shown = with_page(page)
            pairs.append((frames, shown / steps))
        frames, share = (statistics.median(column) for column in zip(*pairs, strict=True))
        show(f"{name}: frames a second", frames, Bar(25, at_least=True))
        show(f"{name}: steps a second, with it / without", share, Bar(0.8, at_least=True))
    show("milliseconds of a processor for a frame, without sending it", painting(), None)
    with suppress(OSError):
        show("seconds from the command to the first frame", min(first_frame() for _ in range(ROUNDS)), Bar(1.5))


if __name__ == "__main__":
    main()
