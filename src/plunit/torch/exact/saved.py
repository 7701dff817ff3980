"""Models saved by torch.save(model, path), read without running code that the file names.

A file may contain only tensors, plain containers and the classes that `to_network` accepts.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from plunit.pieces.formats.importer import Model
from plunit.pieces.graphs import Budget, check_bytes
from plunit.torch.exact.network import LAYERS, REMEDY, convert_module

_PLACE = 2**10  # bytes that a layer needs in addition to its numbers


def load(path: Path, shape: Sequence[int] | None = None) -> Model:
    """Return a saved nn.Sequential, or single layer, as a model; `shape` as in `to_network`.

    TypeError or ValueError if the file holds anything else; `plunit.pieces.load` adds the path and the remedy.
    """
    _check_packed(path)
    module, budget = _module(path), Budget(REMEDY)
    _count_tensors(module, budget)
    return convert_module(module, shape, budget)


def _check_packed(path: Path) -> None:
    """Raise ValueError if the unpacked archive is too large; PyTorch does not compress, but other programs may."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            check_bytes("the unpacked file", sum(part.file_size for part in archive.infolist()))


def _module(path: Path) -> nn.Module:
    with torch.serialization.safe_globals([*LAYERS, set]):
        try:
            foreign = torch.serialization.get_unsafe_globals_in_checkpoint(path)
            content = None if foreign else torch.load(path, map_location="cpu", weights_only=True)
        # a file of any content can fail in any way
        except Exception as error:
            raise ValueError(f"the file cannot be read as a saved model ({type(error).__name__})") from None
    if foreign:
        allowed = ", ".join(layer.__name__ for layer in LAYERS)
        raise ValueError(f"the file holds {', '.join(sorted(foreign))}, but may hold only {allowed}")
    if not isinstance(content, nn.Module):
        raise TypeError(f"the file holds {type(content).__name__}, not a model")
    return content


def _count_tensors(module: nn.Module, budget: Budget) -> None:
    """Count the tensors at each place; a tensor may be expanded from one number, and a layer occur in many places."""
    for tensors in _places(module, ()):
        budget.take("a layer", _PLACE + sum(8 * tensor.numel() for tensor in tensors))


def _places(module: nn.Module, around: tuple[nn.Module, ...]) -> Iterator[list[Tensor]]:
    """Yield the tensors of a module and of all modules in it, once for each place."""
    # a module that contains itself is refused later, with its name
    if any(module is outer for outer in around):
        return
    own = [vars(module), *(part for part in vars(module).values() if isinstance(part, dict))]
    found = [value for part in own for value in part.values()]
    yield [value for value in found if isinstance(value, Tensor)]
    for value in found:
        if isinstance(value, nn.Module):
            yield from _places(value, (*around, module))
