"""The compiled op: its sources, and its binary from the package or, failing that, from the cache.

A binary works with one build of PyTorch and one Python. Opening it registers its ops, and a second registration ends
the process. So its name covers everything it depends on, and a binary with another name is not opened.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

import torch

from plunit.base import cache
from plunit.programs import compiling

CSRC = Path(__file__).with_name("csrc")
# PyTorch's own threads are OpenMP; without this flag at::parallel_for uses one thread
OP_FLAGS = ["-std=c++20", "-fvisibility=hidden", *([] if platform.system() == "Darwin" else ["-fopenmp"])]
_MODULE = "plunit.torch._native"


class MissingNative(UserWarning):
    """Warns that PLU runs on PyTorch's own ops because the native op is not built."""


def load() -> Any:
    """Return the module of the compiled op; None if there is none for this PyTorch, or if PLUNIT_NATIVE=0."""
    if not _is_wanted():
        return None
    for path in binaries():
        with contextlib.suppress(ImportError):
            return open_binary(path)
    return None


@functools.cache
def notice() -> None:
    """Warn, once per process and unless PLUNIT_NATIVE=0, that the native op is not built, and how to build it."""
    if _is_wanted():
        warnings.warn(
            f"PLU's CPU kernel is not built for torch {torch.__version__}; with it PLU is up to twice as fast. "
            "Build it once: python -m plunit.torch.build. PLUNIT_NATIVE=0 hides this notice.",
            MissingNative,
            stacklevel=3,
        )


def _is_wanted() -> bool:
    return os.environ.get("PLUNIT_NATIVE") != "0"


def binaries() -> Iterator[Path]:
    """Yield the binaries for this PyTorch: in the package, then in the cache."""
    if (packaged := Path(__file__).with_name(binary_name())).exists():
        yield packaged
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home folder
        if (cache.user_cache() / binary_name()).exists():  # otherwise no folder is created
            path = cache.private_folder() / binary_name()
            if cache.is_verified(path):
                yield path


def open_binary(path: Path) -> Any:
    """Load a binary, which registers its ops."""
    loader = ExtensionFileLoader(_MODULE, str(path))
    spec = importlib.util.spec_from_file_location(_MODULE, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_MODULE] = module
    return module


@functools.cache
def binary_name() -> str:
    """Return the name of the binary, which covers sources, flags, the commit of PyTorch, Python's ABI and the platform.

    The CPU and GPU builds of a PyTorch release are of one commit, and a binary works with all of them.
    """
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    parts = [str(torch.version.git_version), suffix, sysconfig.get_platform(), *compiling.FLAGS, *OP_FLAGS]
    sources = [path.read_bytes() for path in sorted(CSRC.iterdir())]
    digests = [hashlib.sha256(part).digest() for part in [*map(str.encode, parts), *sources]]
    return f"torch-{hashlib.sha256(b''.join(digests)).hexdigest()[:16]}{suffix}"
