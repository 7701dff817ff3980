"""Formats that are known and not read: `load` says what the file is, why it is refused, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plunit.pieces.formats import json_text, keras_file, nnet_text, onnx_reading, safetensors_file, torch_file
from plunit.pieces.formats.importer import Content, Importer, check_bytes
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


IMPORTERS: tuple[Importer, ...] = (
    onnx_reading.IMPORTER,
    keras_file.IMPORTER,
    safetensors_file.IMPORTER,
    torch_file.IMPORTER,
    nnet_text.IMPORTER,
    json_text.IMPORTER,
)
"""The formats that `load` reads."""


def load(path: str | Path, shape: tuple[int, ...] | None = None) -> Network:
    """Return the network in a file: ONNX, Keras, safetensors with a list of layers, torch.save, .nnet or JSON.

    The format is found by the file's content. Nothing in the file is executed. ValueError if the file has no known
    format, or holds anything other than affine layers and piecewise-linear activations; its text has the format and
    the remedy in one line. ModuleNotFoundError names the package that a format needs: onnx, h5py, safetensors or torch.

    A model of PyTorch with convolutions or pooling needs the `shape` of its input, (channels, height, width) or
    (channels, length). Other formats have no such layers. A curve in JSON becomes a network of one input, whose first
    and last piece go on beyond the ends of the curve.

    The weights are those of the file. The network is their exact function; a framework evaluates it in float32.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder, a device or a pipe; give the file of a model")
    content = Content.of(path)
    importer = recognise(content)
    if importer is None:
        names = ", ".join(each.name for each in IMPORTERS)
        raise ValueError(f"{path} has no known format; known are {names}")
    try:
        check_bytes("it", content.size)
        return importer.read(path) if shape is None else importer.read_shaped(path, shape)
    except MemoryError:
        raise
    except ImportError as error:
        package = str(error.name).removeprefix("plunit.").partition(".")[0]
        text = f"{path} is {importer.name}; to read it, install {package}: pip install {package}"
        raise ModuleNotFoundError(text, name=package) from None
    # a file of any content can fail in any way
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is {importer.name}: {reason}; {importer.remedy}") from None


def recognise(content: Content) -> Importer | None:
    """Return the format of a file, or None if it is not known."""
    known = (*IMPORTERS, *REFUSED)
    return next((importer for importer in known if importer.recognises(content)), None)
