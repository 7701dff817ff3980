"""The machine: a description for results, its processors and its memory."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # glibc's mallopt


def describe_machine() -> dict[str, str]:
    """Return date, commit, processor, system and versions; "not installed" for a library that is missing."""
    return {
        "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "commit": _commit(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "plunit": _version("plunit"),
        **{name: _version(name) for name in ("numpy", "torch")},
    }


def keep_freed_memory() -> None:
    """Let glibc reuse large blocks rather than return them to the system, which costs a page fault for every 4 KiB.

    Page faults took 20 % of a training step of the lab's convolutional network, whose activations need 6 MB.
    """
    _tell_glibc({_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 1 << 26})


def return_freed_memory() -> None:
    """Let glibc return freed arrays of a megabyte or more to the system at once, whatever was freed before."""
    _tell_glibc({_MMAP_THRESHOLD: 1 << 20})


def _tell_glibc(options: Mapping[int, int]) -> None:
    if platform.libc_ver()[0] == "glibc":
        with contextlib.suppress(OSError, AttributeError):
            for option, value in options.items():
                ctypes.CDLL(None).mallopt(option, value)


def processors() -> int:
    """Return the number of threads to use: OMP_NUM_THREADS, or the processors available to this process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    command = ["git", "-C", str(_PACKAGE), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        tracked = subprocess.run([*command[:3], "ls-files", "--error-unmatch", "__init__.py"], capture_output=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown" if tracked.returncode == 0 else "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
