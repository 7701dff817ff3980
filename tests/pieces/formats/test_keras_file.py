"""Reading .keras files: every layer against Keras itself, and what is refused."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
from model_files import POINTS, keras_values, save_keras

from plunit.pieces import load

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")

from plunit.keras import PLU, plu  # noqa: E402

layers = keras.layers
LAYERS = {
    "Dense": lambda: layers.Dense(4),
    "Dense without bias": lambda: layers.Dense(4, use_bias=False),
    "relu": lambda: layers.Dense(4, activation="relu"),
    "relu6": lambda: layers.Dense(4, activation="relu6"),
    "leaky_relu": lambda: layers.Dense(4, activation="leaky_relu"),
    "hard_sigmoid": lambda: layers.Dense(4, activation="hard_sigmoid"),
    "hard_tanh": lambda: layers.Dense(4, activation="hard_tanh"),
    "plu": lambda: layers.Dense(4, activation=plu),
    "PLU as activation": lambda: layers.Dense(4, activation=PLU(0.3, 2.0)),
    "Activation": lambda: layers.Activation("relu"),
    "PLU": lambda: PLU(0.3, 0.5),
    "PLU, learned": lambda: PLU(0.3, 2.0, learnable=True),
    "PLU, learned c": lambda: PLU(learnable="c"),
    "PLU, learned for each unit": lambda: PLU(learnable=True, shared_axes=()),
    "ReLU": lambda: layers.ReLU(),
    "ReLU, bounded": lambda: layers.ReLU(max_value=1.5, negative_slope=0.25),
    "LeakyReLU": lambda: layers.LeakyReLU(negative_slope=0.2),
    "PReLU": lambda: layers.PReLU(),
    "PReLU, shared": lambda: layers.PReLU(shared_axes=[1]),
    "BatchNormalization": lambda: layers.BatchNormalization(epsilon=0.01),
    "BatchNormalization, bare": lambda: layers.BatchNormalization(center=False, scale=False),
    "Normalization": lambda: layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 0.0, 9.0]),
    "Normalization, inverse": lambda: layers.Normalization(mean=1.0, variance=4.0, invert=True),
    "Normalization, adapted": lambda: adapted(layers.Normalization()),
    "Rescaling": lambda: layers.Rescaling(0.5, offset=-1.0),
    "Flatten": lambda: layers.Flatten(),
    "Dropout": lambda: layers.Dropout(0.5),
    "Sequential": lambda: keras.Sequential([layers.Dense(4), PLU(), layers.Dense(3, activation="relu")]),
}

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


def adapted(layer):
    layer.adapt(2 * POINTS + 1)
    return layer


def model(*inside):
    """A model whose variables all have values of their own."""
    made = keras.Sequential([keras.Input((3,)), *inside])
    rng = np.random.default_rng(2)
    made.set_weights([np.abs(rng.normal(size=weight.shape)) + 0.1 for weight in made.get_weights()])
    return made


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_is_that_of_keras(name, tmp_path):
    if name == "Normalization, adapted":
        made = keras.Sequential([keras.Input((3,)), LAYERS[name]()])
    else:
        made = model(LAYERS[name](), layers.Dense(3), LAYERS[name](), layers.Dense(2, name="last"))
    save_keras(made, tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model")(POINTS), keras_values(made, POINTS), rtol=1e-4, atol=1e-4)


@keras.saving.register_keras_serializable(package="other")
class Dense(layers.Dense):
    """Not the Dense of Keras, whatever its name is."""

    def call(self, inputs):
        return super().call(inputs) ** 2


REFUSED = {
    "tanh": (
        lambda: model(layers.Dense(2, activation="tanh")),
        "layer 'dense', Dense: its activation 'tanh' is not known",
    ),
    "Softmax": (lambda: model(layers.Softmax()), "Softmax: it is not affine or piecewise-linear"),
    "a layer of one's own": (lambda: model(Dense(2)), "other>Dense: it is not affine"),
    "a threshold": (lambda: model(layers.ReLU(threshold=0.5)), "its threshold 0.5 makes it jump"),
    "images": (
        lambda: keras.Sequential([keras.Input((3, 1)), layers.Flatten(), layers.Dense(2)]),
        "its input has shape [None, 3, 1]",
    ),
    "a graph": (
        lambda: keras.Model(x := keras.Input((3,)), layers.Dense(2)(x)),
        "it holds Functional, and only a Sequential is a chain of layers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_pieces_is_one_line(name, tmp_path):
    make, reason = REFUSED[name]
    keras.utils.clear_session()
    save_keras(make(), tmp_path / "model")
    with pytest.raises(ValueError, match="is a Keras model: ") as error:
        load(tmp_path / "model")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def rewritten(path, change):
    """Write a model whose variables are changed by `change(file)` and whose configuration stays."""
    keras.utils.clear_session()
    save_keras(model(layers.Dense(2)), path)
    with zipfile.ZipFile(path) as archive:
        config, weights = json.loads(archive.read("config.json")), io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(weights, "r+") as file:
        change(file, config)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights.getvalue())


KERNEL = "layers/dense/vars/0"


def replace(file, make):
    del file[KERNEL]
    make(file)


def outside(file):
    file.create_dataset(KERNEL, (3, 2), "f4", external=[("secret.bin", 0, 24)])


def virtual(file):
    layout = h5py.VirtualLayout((3, 2), "f4")
    layout[:] = h5py.VirtualSource("secret.h5", "w", (3, 2))
    file.create_virtual_dataset(KERNEL, layout)


CHANGES = {
    "a link to a file": (
        lambda file, config: replace(file, lambda f: f.__setitem__(KERNEL, h5py.ExternalLink("secret.h5", "w"))),
        "0 is a link",
    ),
    "a soft link": (
        lambda file, config: replace(file, lambda f: f.__setitem__(KERNEL, h5py.SoftLink("/layers"))),
        "0 is a link",
    ),
    "an array in another file": (lambda file, config: replace(file, outside), "lies in another file"),
    "a virtual array": (lambda file, config: replace(file, virtual), "lies in another file"),
    "an array of any size": (
        lambda file, config: replace(file, lambda f: f.create_dataset(KERNEL, (2**40, 2), "f4", chunks=(64, 2))),
        "has 17,592,186,044,416 bytes, and at most",
    ),
    "integers of 8 bits": (
        lambda file, config: replace(file, lambda f: f.create_dataset(KERNEL, data=np.zeros((3, 2), "S3"))),
        "not real numbers",
    ),
    "another shape": (
        lambda file, config: replace(file, lambda f: f.create_dataset(KERNEL, data=np.zeros((4, 2), "f4"))),
        "its weight has shape (4, 2), but 3 features come in",
    ),
    "a lost array": (lambda file, config: replace(file, lambda f: None), "lacks /layers/dense/vars/0"),
    "a lost layer": (lambda file, config: file.__delitem__("layers/dense"), "lacks /layers/dense"),
    "no list of layers": (lambda file, config: config.update(config={}), "layers"),
    "a wide input": (
        lambda file, config: config["config"]["layers"][0]["config"].update(batch_shape=[None, 10**6]),
        "a layer of 1,000,000 features has",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_files_made_to_do_harm_are_one_line(name, tmp_path):
    change, reason = CHANGES[name]
    rewritten(tmp_path / "model", change)
    with pytest.raises(ValueError, match="is a Keras model: ") as error:
        load(tmp_path / "model")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_the_unchanged_file_is_read(tmp_path):
    rewritten(tmp_path / "model", lambda file, config: None)
    assert load(tmp_path / "model").outputs == 2
