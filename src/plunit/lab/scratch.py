"""The files of an unfinished cell in `unfinished/`: its progress and its checkpoint.

A checkpoint is one file, its content after the checksum, replaced at once: a process that is killed at any moment
leaves the last complete one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from plunit.base.files import write_atomically

_DIGEST = hashlib.sha256().digest_size


def write_progress(scratch: Path, done: float) -> None:
    """Write the fraction of a cell that is done, for the process that shows the progress."""
    scratch.parent.mkdir(parents=True, exist_ok=True)
    _file(scratch, "progress").write_text(f"{done:.6f}")


def read_progress(scratch: Path) -> float:
    """Return the fraction of a cell that is done; 0 if it is unknown."""
    with contextlib.suppress(OSError, ValueError):
        return float(_file(scratch, "progress").read_text())
    return 0.0


def clear(scratch: Path) -> None:
    """Remove all files of an unfinished cell."""
    for file in scratch.parent.glob(f"{scratch.name}*"):
        file.unlink(missing_ok=True)


def write_checkpoint(scratch: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint of a cell: tensors, numbers, and lists and dictionaries of them."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    write_atomically(_file(scratch, "checkpoint"), hashlib.sha256(content).digest() + content)


def read_checkpoint(scratch: Path) -> dict[str, Any]:
    """Return the content of the checkpoint; {} if it is absent or incomplete."""
    with contextlib.suppress(OSError):
        content = _file(scratch, "checkpoint").read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            return dict(torch.load(io.BytesIO(content[_DIGEST:]), weights_only=True))
    return {}


def _file(scratch: Path, kind: str) -> Path:
    return scratch.with_name(f"{scratch.name}.{kind}")
