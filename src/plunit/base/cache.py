"""The user's cache: files that can be rebuilt or downloaded again, and compiled programs, whose content is verified.

A loaded library can do everything that the user can do, and a damaged one crashes the process without a message. So
compiled programs are stored in a folder that no other user can write to (`private_folder`), with a checksum
(`write_verified`) that is compared before they are loaded (`is_verified`).
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shlex
import shutil
import stat
import sys
import tempfile
import warnings
from pathlib import Path

from plunit.base.files import PART, remove_old_parts, write_atomically


def user_cache() -> Path:
    """Return plunit's folder in the user's cache; it may not exist yet."""
    named = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else "")
    usual = {"darwin": "Library/Caches", "win32": "AppData/Local"}.get(sys.platform, ".cache")
    return Path(named or Path.home() / usual, "plunit")


def private_folder() -> Path:
    """Return a folder that no other user can write to: the user's cache or, if that is not possible, a temporary one.

    The temporary folder is removed when the process ends. A warning names a cache folder to which other
    users can write, and the remedy. A read-only cache folder causes no warning.
    """
    try:
        folder = user_cache()
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        reason = _why_not_private(folder)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home folder
        return _session_folder()
    if reason:
        text = f"the cache folder {folder} is not used for compiled programs, because {reason}"
        warnings.warn(f"{text}; until then every process compiles its own copy", stacklevel=2)
    if reason or not os.access(folder, os.W_OK):
        return _session_folder()
    remove_old_parts(folder)
    return folder


def _why_not_private(path: Path) -> str:
    """Return why other users can write to a file or folder, with the remedy; "" if they cannot, or on Windows."""
    if not hasattr(os, "getuid"):
        return ""
    found, user = path.stat(), os.getuid()
    if found.st_uid != user:
        return f"its owner is user {found.st_uid}, not user {user}; run: chown {user} {shlex.quote(str(path))}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        return f"other users can write to it (mode {mode:o}); run: chmod 700 {shlex.quote(str(path))}"
    return ""


def is_verified(path: Path) -> bool:
    """Whether the checksum and the owner show that this user's `write_verified` wrote the file."""
    try:
        expected = _checksum_path(path).read_text(encoding="ascii").split()[:1]
        return not _why_not_private(path) and expected == [hashlib.sha256(path.read_bytes()).hexdigest()]
    except (OSError, ValueError):
        return False


def write_verified(path: Path, content: bytes) -> None:
    """Write a file, and next to it its checksum in the format of `sha256sum`."""
    line = f"{hashlib.sha256(content).hexdigest()}  {path.name}\n"
    try:
        write_atomically(path, content, 0o600)
        write_atomically(_checksum_path(path), line.encode("ascii"), 0o600)
    except PermissionError:
        # Windows cannot replace a loaded library: another process has compiled and loaded the same one meanwhile
        if not is_verified(path):
            raise


def part_folder(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a folder in `folder` for work in progress; if the process is killed, a later one removes it."""
    return tempfile.TemporaryDirectory(prefix=PART, dir=folder, ignore_cleanup_errors=True)


def _checksum_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


@functools.cache
def _session_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="plunit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
