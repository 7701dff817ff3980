"""Files that are replaced at once keep who may read and write them."""

import os
import stat

import pytest

from plunit.base.files import save_whole, write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """Set the umask that is usual on Linux, for this test."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("old", [0o600, 0o640, 0o644, 0o666, 0o444, 0o755])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_file_that_is_replaced_keeps_its_mode(old, through_a_link, tmp_path):
    path = named = tmp_path / "f.h"
    path.write_text("old")
    path.chmod(old)
    if through_a_link:
        named = tmp_path / "link.h"
        named.symlink_to(path)
    save_whole(named, "new")
    assert (path.read_text(), mode(path)) == ("new", old)


@pytest.mark.usefixtures("umask")
def test_the_content_of_a_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    path, seen = tmp_path / "f.h", []
    path.touch(0o600)
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(stat.S_IMODE(os.fstat(handle).st_mode)), sync(handle)))
    save_whole(path, "new")
    assert seen[0] == 0o600


@pytest.mark.usefixtures("umask")
def test_a_new_file_is_as_open_as_the_umask_allows(tmp_path):
    save_whole(tmp_path / "f.h", "new")
    assert mode(tmp_path / "f.h") == 0o644


@pytest.mark.usefixtures("umask")
def test_a_mode_that_is_asked_for_replaces_a_wider_one(tmp_path):
    path = tmp_path / "program.so"
    path.touch(0o666)
    write_atomically(path, b"new", 0o600)
    assert mode(path) == 0o600
