"""Waiting for something that another thread or process does."""

import time
from pathlib import Path


def wait_until(condition, process=None, seconds=120.0):
    """Wait until condition() is true; fail after some seconds, or if the process that works on it has ended."""
    limit = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.01)


def wait_until_ended(pid):
    """Wait until a process has ended, on Linux; one that has may wait for its parent."""

    def has_ended():
        try:
            return ") Z " in Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True

    wait_until(has_ended)
