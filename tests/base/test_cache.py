"""The user's cache folder on each platform, and files in it that must be as they were written."""

import hashlib
import os
import stat
import sys
import time
import warnings
from pathlib import Path

import pytest

from plunit.base import cache

posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no modes here")
CONTENT = bytes(range(256)) * 20


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The cache folder, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plunit"


@pytest.fixture
def file(tmp_path):
    """A verified file."""
    path = tmp_path / "program.so"
    cache.write_verified(path, CONTENT)
    return path


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_each_platform_has_its_own_and_the_environment_chooses_another(monkeypatch, platform, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache.user_cache() == Path.home() / expected / "plunit"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.user_cache() == Path("/elsewhere/plunit")


@posix
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022], ids=oct)
def test_the_folder_and_its_files_are_for_their_user_alone(folder, mask):
    before = os.umask(mask)
    try:
        assert cache.private_folder() == folder
        cache.write_verified(folder / "program.so", CONTENT)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert cache.is_verified(folder / "program.so")


@posix
@pytest.mark.parametrize(
    ("mode", "user", "reason"),
    [
        *((mode, 0, "") for mode in (0o700, 0o755, 0o750)),
        *((mode, 0, f"other users can write to it (mode {mode:o}); run: chmod 700") for mode in (0o770, 0o707, 0o720)),
        (0o700, 1, "its owner is user {owner}, not user {user}; run: chown {user}"),
    ],
)
def test_a_folder_of_others_or_that_they_can_write_is_not_used(folder, monkeypatch, mode, user, reason):
    folder.mkdir(parents=True)
    folder.chmod(mode)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + user)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        used, _ = cache.private_folder(), cache.private_folder()
    assert (used == folder) == (not reason)
    assert (list(folder.iterdir()), stat.S_IMODE(used.stat().st_mode) & 0o022) == ([], 0)
    found = [str(warning.message) for warning in said]  # once, though it was asked for twice
    assert found == [text for text in found if reason and reason.format(owner=owner, user=owner + user) in text][:1]
    assert bool(found) == bool(reason)


def test_where_users_have_no_number_the_folder_is_used(folder, monkeypatch):
    """As on Windows, where a user's folders are the user's own."""
    monkeypatch.delattr(os, "getuid", raising=False)
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert cache.private_folder() == folder


def test_the_cache_may_be_impossible_to_write_or_the_user_have_no_home(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert tmp_path not in cache.private_folder().parents

    def missing():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", missing)
    assert cache.private_folder().is_dir()


def test_old_parts_are_swept_and_nothing_else(folder):
    cache.private_folder()
    with cache.part_folder(folder) as part:  # such as a process makes, but this one stays
        kept = Path(part).name
        old, young = folder / f"{kept}-old", folder / f"{kept}-young"
        for name in (old, young):
            name.mkdir()
            (name / "half.so").touch()
            name.with_suffix(".file").touch()
        (folder / "train.so").touch()
        for name in (old, old.with_suffix(".file"), folder / "train.so"):
            os.utime(name, (0, time.time() - 3601))
        cache.private_folder()
        left = {young.name, young.with_suffix(".file").name, "train.so"}
        assert {path.name for path in folder.iterdir()} == {kept, *left}
    assert {path.name for path in folder.iterdir()} == left


def test_a_file_is_verified_as_it_was_written(file):
    assert file.read_bytes() == CONTENT
    assert cache.is_verified(file)
    checksum = file.with_name("program.so.sha256")
    assert checksum.read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  program.so\n"
    assert sorted(file.parent.iterdir()) == [file, checksum]
    cache.write_verified(file, b"new")
    assert file.read_bytes() == b"new"
    assert cache.is_verified(file)


def flipped(content):
    return content[:1000] + bytes([content[1000] ^ 4]) + content[1001:]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("program.so", lambda content: content[: len(content) // 2]),
        ("program.so", flipped),
        ("program.so", lambda content: b""),
        ("program.so", None),
        ("program.so.sha256", lambda content: b"0" * 64 + content[64:]),
        ("program.so.sha256", lambda content: content[:10]),
        ("program.so.sha256", lambda content: b""),
        ("program.so.sha256", lambda content: b"\xff" + content),
        ("program.so.sha256", None),
    ],
    ids=["truncated", "flipped", "empty", "missing", "wrong sum", "short sum", "empty sum", "broken sum", "no sum"],
)
def test_a_damaged_file_is_not_verified(file, name, damage):
    path = file.with_name(name)
    path.write_bytes(damage(path.read_bytes())) if damage else path.unlink()
    assert not cache.is_verified(file)


@posix
def test_a_file_that_another_user_put_there_is_not_verified(file, monkeypatch):
    """It may be there from a time when others could write to the folder; its checksum would fit."""
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert not cache.is_verified(file)


@posix
def test_content_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    events = []

    def sync(handle):
        events.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"{os.fstat(handle).st_size} bytes")

    replace = Path.replace
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", lambda *names: events.append("name") or replace(*names))
    cache.write_atomically(tmp_path / "file", CONTENT)
    assert events == [f"{len(CONTENT)} bytes", "name", "folder"]


def test_a_write_that_fails_leaves_the_old_file_and_no_part(file, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    before = sorted(file.parent.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        cache.write_verified(file, b"new")
    assert sorted(file.parent.iterdir()) == before
    assert cache.is_verified(file)


def test_a_library_that_windows_holds_is_left_if_it_is_whole(file, monkeypatch):
    def held(*names):
        raise PermissionError(13, "Access is denied")

    monkeypatch.setattr(Path, "replace", held)
    cache.write_verified(file, b"new")
    assert file.read_bytes() == CONTENT
    file.write_bytes(b"damaged")
    with pytest.raises(PermissionError, match="Access is denied"):
        cache.write_verified(file, b"new")
