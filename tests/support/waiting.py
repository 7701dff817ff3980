"""Waiting for something that another thread or process does."""

import time


def wait_until(condition, process=None, seconds=120.0):
    """Wait until condition() is true; fail after some seconds, or if the process that works on it has ended."""
    limit = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.01)
