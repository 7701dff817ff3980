"""The files of an unfinished cell in the folder of results: its progress, and a checkpoint if it makes any.

A checkpoint is two files: tensors in a safetensors file, numbers in a JSON file. The JSON file names the other one with
a checksum and is replaced last, at once: a process that is killed at any moment leaves the last whole pair.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from plunit.base.files import write_atomically


def path_of(folder: Path, stem: str) -> Path:
    """Return the path, without suffix, that all files of an unfinished cell start with."""
    return folder.resolve() / "unfinished" / stem


def write_progress(scratch: Path, done: float) -> None:
    """Write what part of a cell is done, from 0 to 1, for the process that shows the progress."""
    scratch.parent.mkdir(parents=True, exist_ok=True)
    _file(scratch, "progress").write_text(f"{done:.6f}")


def done(scratch: Path) -> float:
    """Return what part of a cell is done; 0 if nothing is known."""
    with contextlib.suppress(OSError, ValueError):
        return float(_file(scratch, "progress").read_text())
    return 0.0


def clear(scratch: Path) -> None:
    """Remove all files of an unfinished cell."""
    for file in scratch.parent.glob(f"{scratch.name}*"):
        file.unlink(missing_ok=True)


def write_checkpoint(path: Path, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    """Replace the checkpoint of a cell."""
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    new = path.with_name(f"{path.name}-{hashlib.sha256(content).hexdigest()[:16]}.safetensors")
    write_atomically(new, content)
    about = {"tensors": new.name, "sha256": _digest(content, numbers), "numbers": numbers}
    write_atomically(_file(path, "json"), json.dumps(about).encode())
    for old in path.parent.glob(f"{path.name}-*.safetensors"):
        if old != new:
            old.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return tensors and numbers of the checkpoint, None if there is none or it is damaged."""
    try:
        about = json.loads(_file(path, "json").read_bytes())
        content = path.with_name(Path(about["tensors"]).name).read_bytes()
        numbers = about["numbers"]
        if about["sha256"] != _digest(content, numbers):
            return None
        return load(content), numbers
    except Exception:  # a file of any content can fail in any way; training then begins anew
        return None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the state of an optimiser as named tensors."""
    return {
        f"optimizer.{i}.{name}": value
        for i, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` returned, in the memory order of the parameters, as fused steps need it."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for key, value in tensors.items():
        kind, *rest = key.split(".", 2)
        if kind == "optimizer":
            parameter = parameters[int(rest[0])]
            like = torch.empty_like(parameter) if value.shape == parameter.shape else torch.empty_like(value)
            optimizer.state[parameter][rest[1]] = like.detach().copy_(value)


def _digest(content: bytes, numbers: dict[str, Any]) -> str:
    return hashlib.sha256(content + json.dumps(numbers, sort_keys=True).encode()).hexdigest()


def _file(scratch: Path, kind: str) -> Path:
    return scratch.with_name(f"{scratch.name}.{kind}")
