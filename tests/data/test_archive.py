"""Archives are read within limits, by exact name, and nothing of them is ever written."""

import gzip
import io
import tarfile

import pytest

from plunit.data import archive
from plunit.data.archive import SourceFailed, members

SIZES = {"a/one": range(3, 4), "a/two": range(1, 10)}
GOOD = {"a/one": b"one", "a/two": b"second"}


def read(content, sizes=SIZES):
    return dict(members(io.BytesIO(content), sizes))


def special(kind, **fields):
    info = tarfile.TarInfo()
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def test_wanted_members_come_and_others_do_not(targz, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    others = {"../a/one": b"up", "/a/one": b"root", "a/../a/one": b"around", "a/one/": b"", "b": b"x" * 100_000}
    assert read(targz(others | GOOD)) == GOOD
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["../a/one", "/a/one", "./a/one", "a//one", "A/ONE"])
def test_a_member_of_another_path_does_not_serve(targz, name):
    with pytest.raises(SourceFailed, match=r"lacks a/one$"):
        read(targz({name: b"one", "a/two": b"second"}))


@pytest.mark.parametrize(
    "info",
    [
        special(tarfile.SYMTYPE, linkname="/etc/passwd"),
        special(tarfile.LNKTYPE, linkname="a/two"),
        special(tarfile.DIRTYPE),
        special(tarfile.FIFOTYPE),
        special(tarfile.CHRTYPE),
    ],
    ids=["symlink", "hard link", "folder", "fifo", "device"],
)
def test_only_plain_files_serve(targz, info):
    with pytest.raises(SourceFailed, match="a/one in the archive is not a plain file"):
        read(targz({"a/two": b"second", "a/one": info}))


@pytest.mark.parametrize("content", [b"", b"on", b"four"])
def test_a_member_of_another_size_is_refused(targz, content):
    with pytest.raises(SourceFailed, match=f"a/one in the archive has {len(content)} bytes"):
        read(targz({"a/one": content}))


def test_a_header_that_promises_more_than_there_is(monkeypatch):
    huge = tarfile.TarInfo("a/one")
    huge.size = 2**40
    with pytest.raises(SourceFailed, match="a/one in the archive has 1099511627776 bytes"):
        read(gzip.compress(huge.tobuf()))


@pytest.mark.parametrize("before", [{"b": bytes(200_000)}, {"b" * 150_000: b""}], ids=["member", "header"])
def test_an_archive_stops_at_the_limit_after_decompression(targz, monkeypatch, before):
    monkeypatch.setattr(archive, "LIMIT", 100_000)
    content = targz(before | GOOD)
    assert len(content) < 10_000
    with pytest.raises(SourceFailed, match="larger than 100000 bytes"):
        read(content)


def test_an_archive_stops_at_the_limit_before_decompression(targz, monkeypatch):
    monkeypatch.setattr(archive, "LIMIT", 100_000)
    with pytest.raises(SourceFailed, match="larger than 100000 bytes"):
        read(gzip.compress(b"") * 10_000 + targz(GOOD))


def test_truncation_anywhere_is_found(targz):
    content = targz({"a/one": b"one", "a/two": b"second"})

    def is_refused(end):
        try:
            read(content[:end])
        except SourceFailed:
            return True
        return False

    ends = range(0, len(content) - 30, 7)  # the last bytes are padding of the format and its checksum
    assert [end for end in ends if not is_refused(end)] == []


@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(b"no archive"), gzip.compress(b"")])
def test_what_is_no_archive_is_refused(content):
    with pytest.raises(SourceFailed, match="the archive"):
        read(content)


def test_progress_counts_the_compressed_bytes(targz):
    content = targz({**GOOD, "a/three": b"3"})
    counts = []
    dict(members(io.BytesIO(content), {**SIZES, "a/three": range(2)}, counts.append))
    assert 0 < sum(counts) <= len(content)
