"""Find and load the compiled op: the one in the package, else the one that `plunit.torch.build` put into the cache.

A binary works with one release of PyTorch. Opening a binary registers its ops, and a second registration ends the
process. So the release is read from the file, and a binary of another release is not opened.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

import torch

from plunit.base import cache
from plunit.torch import extension

_RELEASE = re.compile(rb"plunit's native op was built with torch ([0-9.]+)")  # a message of csrc/binding.cpp


class MissingNative(UserWarning):
    """PLU runs on PyTorch's own ops because the native op is not built."""


def load() -> Any:
    """Return the compiled op as a module; None if there is none for this PyTorch, or if PLUNIT_NATIVE=0."""
    if not _is_wanted():
        return None
    for path in binaries():
        with contextlib.suppress(ImportError):
            return open_binary(path)
    return None


@functools.cache
def notice() -> None:
    """Say, once in a process and unless PLUNIT_NATIVE=0, that the native op can be built, and how."""
    if _is_wanted():
        warnings.warn(
            f"PLU runs without its native op, which is not built for torch {torch.__version__}. It is up to twice as "
            "fast on a CPU, and six times for learned alpha and c. Build it once: python -m plunit.torch.build. "
            "PLUNIT_NATIVE=0 hides this notice.",
            MissingNative,
            stacklevel=3,
        )


def _is_wanted() -> bool:
    return os.environ.get("PLUNIT_NATIVE") != "0"


def binaries() -> Iterator[Path]:
    """Yield the compiled ops for this PyTorch: in the package, then in the cache."""
    spec = importlib.util.find_spec(extension.NAME)
    if spec is not None and spec.origin is not None and _fits(Path(spec.origin)):
        yield Path(spec.origin)
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home folder
        if (cache.user_cache() / cache_name()).exists():  # else no folder is made
            path = cache.private_folder() / cache_name()
            if cache.verified(path):
                yield path


def _fits(path: Path) -> bool:
    found = _RELEASE.search(path.read_bytes())
    return found is not None and torch.__version__.startswith(found[1].decode())


def open_binary(path: Path) -> Any:
    """Load a binary, and with it register the ops it holds."""
    loader = ExtensionFileLoader(extension.NAME, str(path))
    spec = importlib.util.spec_from_file_location(extension.NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[extension.NAME] = module
    return module


@functools.cache
def cache_name() -> str:
    """Return the name of the binary in the cache; it covers sources, flags, PyTorch, Python's ABI and the platform."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    parts = [torch.__version__, suffix, sysconfig.get_platform(), *map(" ".join, extension.flags())]
    sources = [path.read_bytes() for path in [*extension.units(extension.CSRC), *extension.headers(extension.CSRC)]]
    digests = [hashlib.sha256(part).digest() for part in [*map(str.encode, parts), *sources]]
    return f"torch-{hashlib.sha256(b''.join(digests)).hexdigest()[:16]}{suffix}"
