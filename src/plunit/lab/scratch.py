"""What a long cell needs while it is computed: one thread, and in `unfinished/` its progress and its checkpoint.

A checkpoint is one file, tensors behind their checksum, replaced at once: a process that is killed at any moment leaves
the last whole one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from plunit.base.files import write_atomically

_DIGEST = hashlib.sha256().digest_size


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch's operations on one thread.

    The tensors of small networks are too short to share. Two threads gain little on idle cores. If another process uses
    one of the cores, each operation waits for it (measured: a hundred times slower).
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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


def write_checkpoint(scratch: Path, tensors: dict[str, Tensor]) -> None:
    """Replace the checkpoint of a cell."""
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    write_atomically(_file(scratch, "checkpoint"), hashlib.sha256(content).digest() + content)


def read_checkpoint(scratch: Path) -> dict[str, Tensor]:
    """Return the tensors of the checkpoint, none if there is no whole one."""
    with contextlib.suppress(OSError):
        content = _file(scratch, "checkpoint").read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            return dict(load(content[_DIGEST:]))
    return {}


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


def _file(scratch: Path, kind: str) -> Path:
    return scratch.with_name(f"{scratch.name}.{kind}")
