"""Formats that are known and not read: `load` says what the file is, why it is refused, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plunit.pieces.formats.importer import Content, Importer
from plunit.pieces.networks import Network


def _refusing(name: str, recognises: Callable[[Content], bool], reason: str, remedy: str) -> Importer:
    def read(path: Path) -> Network:
        raise ValueError(reason)

    return Importer(name, recognises, read, remedy)


def _is_pickle(content: Content) -> bool:
    return content.head[:1] == b"\x80" and content.head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


REFUSED: tuple[Importer, ...] = (
    _refusing(
        "a TorchScript program",
        lambda content: any(name.endswith("/constants.pkl") for name in content.members),
        "it holds a program, which would have to be run",
        "save the nn.Sequential itself with torch.save(model, path)",
    ),
    _refusing(
        "a program of torch.export",
        lambda content: any(name.endswith("archive_format") for name in content.members),
        "it holds a program, which would have to be run",
        "save the nn.Sequential itself with torch.save(model, path), or export it with torch.onnx.export",
    ),
    _refusing(
        "a pickle",
        _is_pickle,
        "a pickle can run any code when it is read",
        "unpickle it yourself if you trust it, and give a model of scikit-learn to plunit.pieces.from_sklearn",
    ),
    _refusing(
        "an HDF5 file",
        lambda content: content.head.startswith(b"\x89HDF\r\n\x1a\n"),
        "the old format of Keras, and weights alone, are not read",
        'save the whole model with model.save("model.keras")',
    ),
    _refusing(
        "an archive of NumPy arrays",
        lambda content: bool(content.members) and all(name.endswith(".npy") for name in content.members),
        "it does not say how its arrays make a network",
        "build the network with plunit.pieces.network and save it with plunit.pieces.save_safetensors",
    ),
    _refusing(
        "a curve in CSV",
        lambda content: content.text().startswith("low,high,patterns,"),
        "it holds a curve, not a network",
        "plunit.pieces.load_csv reads it",
    ),
)
