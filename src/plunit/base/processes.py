"""Processes that are ended together with all that they started, such as a compiler and its parts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any


@contextlib.contextmanager
def own_group(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a group of its own and end the group, whatever happens; on Windows the process alone."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):  # on macOS a group that has just ended
                    os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
                process.wait()


def run_group(command: list[str], *, timeout: float, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command as `subprocess.run` does, and keep what it prints; nothing runs on after an error or Ctrl-C."""
    with own_group(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        stdout, stderr = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
