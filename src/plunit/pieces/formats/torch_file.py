"""Models saved by torch.save(model, path): recognised here, read by `plunit.torch.saved`."""

from __future__ import annotations

import importlib
from pathlib import Path

from plunit.base.errors import UserError
from plunit.pieces.formats.importer import Content, Importer
from plunit.pieces.networks import Network

_BEFORE_1_6 = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the magic number, pickled


def _recognises(content: Content) -> bool:
    names = content.members
    program = any(name.endswith(("/constants.pkl", "archive_format")) for name in names)
    return content.head.startswith(_BEFORE_1_6) or (not program and any(name.endswith("/data.pkl") for name in names))


def _read(path: Path, shape: tuple[int, ...] | None = None) -> Network:
    # by name, because plunit.pieces does not import PyTorch
    saved = importlib.import_module("plunit.torch.saved")
    try:
        net: Network = saved.load(path, shape)
    except UserError as error:
        raise ValueError(str(error).removeprefix(str(path)).lstrip(": ")) from None
    return net


IMPORTER = Importer(
    "a model saved by torch.save",
    _recognises,
    _read,
    "an nn.Sequential of the layers that to_network takes can be read",
    _read,
)
