"""`load`: the network in a file, whose format is recognised by its content, or one line that says why it is refused.

`IMPORTERS` are the formats that are read; `REFUSED` are recognised and refused, each with its remedy.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from plunit.base.errors import EXTRAS, describe_missing
from plunit.pieces.arrays import Floats
from plunit.pieces.formats import csv_json, nnet_text
from plunit.pieces.formats.importer import Content, Importer, JumpWarning, Model
from plunit.pieces.formats.onnx_graphs import follower
from plunit.pieces.graphs import check_bytes
from plunit.pieces.networks import Network


def load(path: str | Path, shape: tuple[int, ...] | None = None) -> Network:
    """Return the network in a file: ONNX, torch.save, .nnet or JSON.

    The format is recognised by the file's content. Nothing in the file is executed. ValueError, in one line with the
    format and the remedy, if the file has no known format or holds anything other than affine layers and
    piecewise-linear activations. ModuleNotFoundError names the package that a format needs: onnx or torch.

    A model of PyTorch with convolutions or pooling needs the `shape` of its input, (channels, height, width) or
    (channels, length). Other formats contain it. A curve in JSON becomes a network of one input, which extends the
    first and the last piece beyond the ends of the curve.

    The weights are those of the file as float64 values, and the network is their exact function: consecutive matrices
    stay separate unless float64 holds their product. The exceptions are a factor and a shift for each number, which are
    joined with the adjacent layer and rounded to float64: those of a BatchNorm, an average, a Scaler or constants in
    ONNX, and means and ranges in .nnet. A proof is about the weights of the network that is returned; `plunit prove`
    says where these were rounded. A framework evaluates the file in float32. An ONNX graph may jump where one of its
    constants was rounded; then a `JumpWarning` has the bound on the difference.
    """
    model = read_model(path, shape)
    if model.jump is not None:
        warnings.warn(JumpWarning(Path(path), model.jump), stacklevel=2)
    return model.network


def read_model(path: str | Path, shape: tuple[int, ...] | None = None) -> Model:
    """Return the network in a file, as `load` does, with its differences from the file."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder, a device or a pipe; give the file of a model")
    content = Content.of(path)
    if refused := next((each for each in REFUSED if each.recognises(content)), None):
        raise ValueError(f"{path} is {refused.name}: {refused.reason}; {refused.remedy}")
    importer = next((each for each in IMPORTERS if each.recognises(content)), None)
    if importer is None:
        names = ", ".join(each.name for each in IMPORTERS)
        raise ValueError(f"{path} has no known format; load reads {names}")
    try:
        check_bytes("the file", content.size)
        if shape is not None and not importer.takes_shape:
            raise ValueError(f"shape is only for models of PyTorch, got {shape}; leave it out")
        return importer.read(path, shape) if importer.takes_shape else importer.read(path)
    except MemoryError:
        raise
    except ImportError as error:
        raise _import_error(f"{path} is {importer.name}; reading it", error) from None
    # a file of any content can fail in any way
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is {importer.name}: {reason}; {importer.remedy}") from None


def load_nnet(path: str | Path) -> tuple[Network, Floats | None]:
    """Return the network of a .nnet file and the box of its inputs [in, 2], None if the file has none.

    Errors as in `load`, and ValueError if the file has another format.
    """
    model, path = read_model(path), Path(path)
    if not nnet_text.IMPORTER.recognises(Content.of(path)):
        raise ValueError(
            f"{path} is not a .nnet file, and other formats have no box; use plunit.pieces.load for the network"
        )
    return model.network, model.box


_BEFORE_1_6 = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The first bytes of files of torch.save before PyTorch 1.6: a pickled number."""


def _has(ending: str) -> Callable[[Content], bool]:
    return lambda content: any(name.endswith(ending) for name in content.members)


def _starts_with(start: bytes) -> Callable[[Content], bool]:
    return lambda content: content.head.startswith(start)


_is_script, _is_exported, _is_saved = _has("/constants.pkl"), _has("archive_format"), _has("/data.pkl")


def _is_torch(content: Content) -> bool:
    whole = _is_saved(content) and not _is_script(content) and not _is_exported(content)
    return whole or content.head.startswith(_BEFORE_1_6)


def _is_pickle(content: Content) -> bool:
    modern = content.head[:1] == b"\x80" and content.head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    return modern and not content.head.startswith(_BEFORE_1_6)


def _is_safetensors(content: Content) -> bool:
    length = int.from_bytes(content.head[:8], "little")
    return 2 <= length <= content.size - 8 and content.head[8:9] == b"{"


def _read_torch(path: Path, shape: tuple[int, ...] | None = None) -> Model:
    # by name, because plunit.pieces must not import PyTorch
    model: Model = importlib.import_module("plunit.torch.exact.saved").load(path, shape)
    return model


_TORCH = Importer(
    "a model saved by torch.save",
    _is_torch,
    _read_torch,
    "save the model itself, an nn.Sequential of layers that to_network supports, with torch.save(model, path)",
    takes_shape=True,
)

IMPORTERS: tuple[Importer, ...] = (follower.IMPORTER, _TORCH, nnet_text.IMPORTER, csv_json.IMPORTER)
"""The formats that `load` reads."""

_PROGRAM = "the file holds a program, which would have to be run"
_ARRAYS = "the file does not say how its arrays form a network"
_SAVED = "save the nn.Sequential itself with torch.save(model, path)"
_KERAS = "load it with keras.models.load_model(path), and give the model to plunit.pieces.from_keras"


class RefusedFormat(NamedTuple):
    """A format that is recognised and refused: its name, how it is recognised, the reason, and the remedy."""

    name: str
    recognises: Callable[[Content], bool]
    reason: str
    remedy: str


REFUSED = (
    RefusedFormat("a TorchScript program", _is_script, _PROGRAM, _SAVED),
    RefusedFormat(
        "a program of torch.export", _is_exported, _PROGRAM, f"{_SAVED}, or export it with torch.onnx.export"
    ),
    RefusedFormat(
        "a pickle",
        _is_pickle,
        "a pickle can run any code when it is read",
        "unpickle it yourself if you trust it, and give a model of scikit-learn to plunit.pieces.from_sklearn",
    ),
    RefusedFormat(
        "a Keras model",
        lambda content: {"config.json", "model.weights.h5"} <= set(content.members),
        "only Keras itself reads its files",
        _KERAS,
    ),
    RefusedFormat(
        "an HDF5 file", _starts_with(b"\x89HDF\r\n\x1a\n"), "the old format of Keras is not supported", _KERAS
    ),
    RefusedFormat(
        "a safetensors file",
        _is_safetensors,
        _ARRAYS,
        "load the arrays into their model, and give that to plunit.torch.to_network or plunit.pieces.from_keras",
    ),
    RefusedFormat(
        "an archive of NumPy arrays",
        lambda content: bool(content.members) and all(name.endswith(".npy") for name in content.members),
        _ARRAYS,
        "build the network with plunit.pieces.network and save it with plunit.pieces.save_json",
    ),
    RefusedFormat(
        "a curve in CSV",
        _starts_with(b"low,high,patterns,"),
        "the file holds a curve, not a network",
        "save the network itself, or its curve, as .json",
    ),
)
"""The formats that are recognised and refused."""


def _import_error(user: str, error: ImportError) -> ImportError:
    """Return the error about a package that `user` needs and that is missing or broken."""
    package = str(error.name).removeprefix("plunit.").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package in EXTRAS:
        return ModuleNotFoundError(describe_missing(user, package), name=package)
    reason = " ".join(str(error).split()) or type(error).__name__
    return ImportError(f"{user} fails at an import: {reason}; repair or reinstall the package", name=error.name)
