"""Read a model saved by torch.save(model, path) without running code that the file names.

A file may name the classes that `to_network` takes, besides tensors and plain containers, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from plunit.errors import UserError
from plunit.pieces import Network
from plunit.torch.exact.network import LAYERS, to_network

_REMEDY = "save the model itself, an nn.Sequential, with torch.save(model, path)"


def load(path: Path, shape: Sequence[int] | None = None) -> Network:
    """Return a saved nn.Sequential, or single layer, as a network for `plunit.pieces`; `shape` as in `to_network`."""
    if not path.is_file():
        raise UserError(f"{path} is not a file; {_REMEDY}")
    try:
        return to_network(_module(path), shape)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None


def _module(path: Path) -> nn.Module:
    with torch.serialization.safe_globals([*LAYERS, set]):
        try:
            foreign = torch.serialization.get_unsafe_globals_in_checkpoint(path)
            content = None if foreign else torch.load(path, map_location="cpu", weights_only=True)
        # a file of any content can fail in any way
        except Exception as error:
            raise UserError(f"{path} cannot be read as a saved model ({type(error).__name__}); {_REMEDY}") from None
    if foreign:
        allowed = ", ".join(layer.__name__ for layer in LAYERS)
        raise UserError(f"{path} holds {', '.join(sorted(foreign))}; a piecewise-linear model has only {allowed}")
    if not isinstance(content, nn.Module):
        raise UserError(f"{path} holds {type(content).__name__}, not a model; {_REMEDY}")
    return content
