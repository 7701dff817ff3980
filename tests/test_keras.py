"""The layer PLU of plunit.keras on the backend at hand; test_array_functions.py has the functions."""

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")  # Keras would take TensorFlow, which may be absent

import keras
import ml_dtypes
import numpy as np
import pytest
from keras import ops
from keras_tensors import BACKEND, array, kind
from oracles import few_points, paper

import plunit.numpy
from plunit.keras import PLU, plu

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


@pytest.mark.skipif(BACKEND == "jax", reason="JAX has no float64 by default")
def test_float64():
    x = np.linspace(-3, 3, 20)
    got = PLU(0.3, 0.7, learnable=True, dtype="float64")(ops.convert_to_tensor(x, "float64"))
    assert kind(got) == "float64"
    np.testing.assert_allclose(array(got), paper(x, 0.3, 0.7), rtol=1e-14)


def test_symbolic_tensors_and_masks():
    x = keras.Input((3,))
    y = plu(x, 0.25)
    assert y.shape == PLU(learnable=True, shared_axes=())(x).shape == (None, 3)
    masked = keras.layers.Masking()(np.float32([[[0, 0], [1, 2]]]))
    assert array(PLU()(masked)._keras_mask).tolist() == [[False, True]]
    np.testing.assert_array_equal(array(keras.Model(x, y)(np.float32([[-3, 1, 3]]))), [[-1.5, 1, 1.5]])


@pytest.mark.parametrize(("learnable", "names"), [(False, []), ("alpha", ["raw_alpha"]), ("c", ["raw_c"])])
def test_only_what_is_learnable_has_a_weight(learnable, names):
    layer = PLU(0.3, 0.5, learnable=learnable)
    layer.build((None, 4))
    assert [weight.name for weight in layer.trainable_weights] == names
    np.testing.assert_allclose(array(layer(few_points(0.5)[None])), paper(few_points(0.5)[None], 0.3, 0.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("shared_axes", "shape", "broadcast"),
    [
        ("all", (), ()),
        ((np.int64(1), 2), (3,), (1, 1, 3)),
        ([2, 3], (4,), (4, 1, 1)),
        (np.int64(1), (5, 3), (1, 5, 3)),
        ((1, 2, 3), (), ()),
        ((), (4, 5, 3), (4, 5, 3)),
        (None, (4, 5, 3), (4, 5, 3)),
    ],
)
def test_shared_axes(shared_axes, shape, broadcast):
    layer = PLU(learnable=True, shared_axes=shared_axes)
    layer.build((None, 4, 5, 3))
    assert [tuple(weight.shape) for weight in layer.weights] == [shape, shape]
    assert layer.compute_output_shape((None, 4, 5, 3)) == (None, 4, 5, 3)
    if shape:
        with pytest.raises(ValueError, match="expected ndim=4"):
            layer(ops.ones((2, 3)))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 5, 3), scale=2).astype(np.float32)
    raw_alpha, raw_c = rng.normal(size=(2, *shape))
    layer.set_weights([raw_alpha, raw_c])
    alpha, c = (1 / (1 + np.exp(-raw_alpha))).reshape(broadcast), np.exp(raw_c).reshape(broadcast)
    np.testing.assert_allclose(array(layer.alpha), alpha, rtol=1e-6)
    np.testing.assert_allclose(array(layer.c), c, rtol=1e-6)
    np.testing.assert_allclose(array(layer(x)), paper(x, alpha, c), rtol=1e-5)
    np.testing.assert_allclose(array(layer.inverse(layer(x))), x, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.25, 0.5), (0.9, 3.0)])
def test_learnable_values_start_where_told(alpha, c, dtype):
    layer = PLU(alpha, c, learnable=True, dtype=dtype)
    assert (layer.alpha, layer.c) == (alpha, c)
    layer.build((None, 4))
    eps = float(ml_dtypes.finfo(layer.variable_dtype).eps)
    np.testing.assert_allclose([float(array(layer.alpha)), float(array(layer.c))], [alpha, c], rtol=2 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "mixed_bfloat16"])
@pytest.mark.parametrize("raw", [-1e4, 1e4])
def test_bounds_are_strict(raw, dtype):
    layer = PLU(learnable=True, dtype=dtype)
    layer.build((None, 4))
    layer.set_weights([np.float32(raw), np.float32(raw)])
    alpha, c = layer.alpha, layer.c
    assert 0 < float(array(alpha)) < 1
    assert 0 < float(array(c)) < np.inf


def test_mixed_precision_keeps_parameters_in_float32():
    x = np.linspace(-50, 50, 333).astype("bfloat16")
    layer = PLU(0.3, 0.7, learnable=True, dtype="mixed_bfloat16")
    got = layer(ops.cast(x.astype(np.float32), "bfloat16"))
    assert kind(got) == "bfloat16"
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    np.testing.assert_array_equal(array(got), plunit.numpy.plu(x, 0.3, 0.7).astype(np.float32))


@pytest.mark.parametrize("learnable", [False, True, "alpha", "c"])
@pytest.mark.parametrize("shared_axes", ["all", (1,), None])
def test_config_makes_the_same_layer(learnable, shared_axes):
    layer = PLU(0.3, 0.5, learnable=learnable, shared_axes=shared_axes, name="unit", dtype="mixed_bfloat16")
    config = layer.get_config()
    assert PLU.from_config(config).get_config() == config
    assert (config["alpha"], config["c"], config["learnable"]) == (0.3, 0.5, learnable)
    assert config["shared_axes"] == (shared_axes or ())
    assert keras.saving.get_registered_name(PLU) == "plunit>PLU"


def test_a_saved_model_comes_back(tmp_path):
    per_channel = PLU(learnable=True, shared_axes=(1, 2))
    model = keras.Sequential([keras.Input((4, 4, 3)), per_channel, keras.layers.Dense(2, activation=plu), PLU(0.5)])
    per_channel.set_weights([np.float32([-1, 0, 1]), np.float32([-1, 0, 1])])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(2, 4, 4, 3), scale=3).astype(np.float32)
    np.testing.assert_array_equal(array(again(x)), array(model(x)))


def test_training_reduces_the_loss_and_moves_alpha_and_c():
    keras.utils.set_random_seed(0)
    layer = PLU(learnable=True)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(16), layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.02), "mse")
    x = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
    losses = model.fit(x, np.sin(x), epochs=30, batch_size=64, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    assert abs(float(array(layer.alpha)) - 0.1) > 1e-3
    assert abs(float(array(layer.c)) - 1.0) > 1e-3


@pytest.mark.parametrize(("exclude", "decays"), [([], True), (["raw_"], False)])
def test_weight_decay_can_be_kept_off(exclude, decays):
    layer = PLU(learnable=True)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2), layer])
    optimizer = keras.optimizers.SGD(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=exclude)
    optimizer.build(model.trainable_weights)
    optimizer.apply([ops.zeros(weight.shape) for weight in model.trainable_weights], model.trainable_weights)
    assert (abs(float(array(layer.alpha)) - 0.1) > 1e-3) == decays


def run(arguments, **environment):
    command = [sys.executable, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_a_missing_backend_is_named(tmp_path):
    program = "import sys; sys.modules['tensorflow'] = None; import plunit.keras"
    done = run(["-c", program], KERAS_BACKEND="", KERAS_HOME=str(tmp_path))
    assert "ModuleNotFoundError: Keras' default backend is TensorFlow" in done.stderr
    assert "KERAS_BACKEND to torch or jax" in done.stderr


@pytest.mark.skipif(BACKEND != "torch", reason="the run on torch starts the one on JAX")
def test_keras_passes_on_jax():
    """Layers, and of the functions what depends on the operations of a backend."""
    files = [__file__, str(Path(__file__).with_name("test_array_functions.py"))]
    chosen = "test_keras or keras and (kinks or nan or infinities or half or integers or underflows or undoes)"
    done = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *files], KERAS_BACKEND="jax")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: PLU(-0.1), ValueError, r"alpha must be finite and >= 0, got -0\.1"),
        (lambda: PLU(0.0).inverse(1.0), ValueError, r"inverse needs alpha > 0, got 0\.0; a flat piece"),
        (
            lambda: PLU(0.0, learnable=True),
            ValueError,
            r"learnable alpha must lie in \(0, 1\), .* got 0\.0; start from",
        ),
        (lambda: built((0, 1)), ValueError, r'"all" or axes from 1 to 2, got \(0, 1\); axis 0 is the batch'),
        (lambda: built(3), ValueError, r'"all" or axes from 1 to 2, got \(3,\)'),
        (lambda: built((2,)), ValueError, r"one value per unit needs sizes, got \(None, None, 3\); add the None axes"),
    ],
)
def test_messages(call, error, text):
    with pytest.raises(error, match=text):
        call()


def built(shared_axes):
    PLU(learnable=True, shared_axes=shared_axes).build((None, None, 3))
