"""The state of an unfinished cell on disk: tensors in a safetensors file, numbers in a JSON file beside it.

The JSON file names the file of tensors and its checksum and is replaced last, at once: a process that is killed at any
moment leaves the last whole pair.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from plunit.lab.store import write_atomically


def write(path: Path, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    """Replace the checkpoint at path (a name without suffix)."""
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    new = path.with_name(f"{path.name}-{hashlib.sha256(content).hexdigest()[:16]}.safetensors")
    write_atomically(new, content)
    about = {"tensors": new.name, "sha256": _digest(content, numbers), "numbers": numbers}
    write_atomically(_json(path), json.dumps(about).encode())
    for old in _tensors(path):
        if old != new:
            old.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return tensors and numbers of the checkpoint, None if there is none that is whole."""
    try:
        about = json.loads(_json(path).read_bytes())
        content = path.with_name(Path(about["tensors"]).name).read_bytes()
        numbers = about["numbers"]
        if about["sha256"] != _digest(content, numbers):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return load(content), numbers


def remove(path: Path) -> None:
    """Remove the checkpoint, if there is one."""
    for file in (_json(path), *_tensors(path)):
        file.unlink(missing_ok=True)


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


def _json(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _tensors(path: Path) -> list[Path]:
    return list(path.parent.glob(f"{path.name}-*.safetensors"))
