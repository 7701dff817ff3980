"""Models of scikit-learn and of Keras as networks, against their own predictions, and what is refused."""

import os
import re
import warnings

import numpy as np
import pytest
from model_files import POINTS

from plunit.pieces import from_keras, from_sklearn, load

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
pytest.importorskip("sklearn")
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge  # noqa: E402
from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC  # noqa: E402

from plunit.keras import PLU, plu  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
TARGETS = {
    "one output": X @ [1.0, -2.0, 0.5],
    "two outputs": np.abs(X[:, :2]),
    "two classes": X[:, 0] > 0.1,
    "three classes": np.digitize(X[:, 1], [-0.5, 0.5]),
}


def fitted(kind, name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps do not converge
        return kind(hidden_layer_sizes=(7, 5), max_iter=20, random_state=0, **options).fit(X, TARGETS[name])


@pytest.mark.parametrize("activation", ["relu", "identity"])
@pytest.mark.parametrize("name", ["one output", "two outputs"])
def test_a_regressor(name, activation):
    model = fitted(MLPRegressor, name, activation=activation)
    np.testing.assert_allclose(from_sklearn(model)(X), model.predict(X).reshape(80, -1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["two classes", "three classes"])
def test_the_logits_of_classes(name):
    model = fitted(MLPClassifier, name)
    logits = from_sklearn(model)(X)
    powers = np.exp(np.append(0 * logits, logits, axis=1) if name == "two classes" else logits)
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), model.predict_proba(X), rtol=1e-10)


STEPS = {
    "StandardScaler": StandardScaler(),
    "StandardScaler, bare": StandardScaler(with_mean=False, with_std=False),
    "MinMaxScaler": MinMaxScaler((-1, 2)),
    "MinMaxScaler, clipped": MinMaxScaler((-1, 2), clip=True),
    "MaxAbsScaler": MaxAbsScaler(),
    "RobustScaler": RobustScaler(),
    "RobustScaler, bare": RobustScaler(with_centering=False, with_scaling=False),
    "PCA": PCA(2),
    "PCA, whitened": PCA(2, whiten=True),
    "several, one inside": make_pipeline(RobustScaler(), make_pipeline(StandardScaler(), PCA(2))),
    "nothing": "passthrough",
}
SHIFTED = 3 * X + [1.0, -20.0, 5.0]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("last", [MLPRegressor(max_iter=20, random_state=0), LinearRegression()], ids=["MLP", "linear"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pipeline(name, last):
    model = make_pipeline(STEPS[name], last).fit(SHIFTED, TARGETS["two outputs"])
    # beyond the data, where values are clipped
    points = np.concatenate([SHIFTED, 4 * SHIFTED])
    np.testing.assert_allclose(from_sklearn(model)(points), model.predict(points), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["two classes", "three classes"])
@pytest.mark.parametrize("last", [LogisticRegression(), LinearSVC()], ids=["logistic", "support vectors"])
def test_the_scores_of_a_linear_model(name, last):
    model = make_pipeline(StandardScaler(), last).fit(SHIFTED, TARGETS[name])
    scores = model.decision_function(SHIFTED).reshape(80, -1)
    np.testing.assert_allclose(from_sklearn(model)(SHIFTED), scores, rtol=1e-10, atol=1e-10)


def test_a_linear_model_without_intercept_or_with_sparse_coefficients():
    model = Ridge(fit_intercept=False).fit(X, TARGETS["one output"])
    np.testing.assert_allclose(from_sklearn(model)(X)[:, 0], model.predict(X), rtol=1e-12)
    model = LogisticRegression().fit(X, TARGETS["three classes"]).sparsify()
    np.testing.assert_allclose(from_sklearn(model)(X), model.decision_function(X), rtol=1e-12)


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
    "Identity": lambda: layers.Identity(),
    "Sequential": lambda: keras.Sequential([layers.Dense(4), PLU(), layers.Dense(3, activation="relu")]),
}


def adapted(layer):
    layer.adapt(2 * POINTS + 1)
    return layer


def with_weights(model):
    """Give each weight its own value."""
    rng = np.random.default_rng(2)
    model.set_weights([np.abs(rng.normal(size=weight.shape)) + 0.1 for weight in model.get_weights()])
    return model


def sequential(*inside, shape=(3,)):
    return with_weights(keras.Sequential([keras.Input(shape), *inside]))


def functional(*inside):
    x = y = keras.Input((3,))
    for layer in inside:
        y = layer(y)
    return with_weights(keras.Model(x, y))


def agrees(model):
    np.testing.assert_allclose(from_keras(model)(POINTS), model.predict(POINTS, verbose=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_is_that_of_keras(name):
    if name == "Normalization, adapted":
        agrees(keras.Sequential([keras.Input((3,)), LAYERS[name]()]))
    else:
        agrees(sequential(LAYERS[name](), layers.Dense(3), LAYERS[name](), layers.Dense(2, name="last")))


@pytest.mark.parametrize("make", [sequential, functional])
def test_a_functional_model_alone_and_inside_another(make):
    inside = [layers.BatchNormalization(), layers.Dropout(0.5), PLU(learnable=True), layers.Dense(4, activation="relu")]
    agrees(make(layers.Dense(3), functional(*inside), layers.Dense(2)))


EXPORTED = {
    "PLU": lambda: [layers.Dense(4), PLU(0.3, 2.0)],
    "plu": lambda: [layers.Dense(4, activation=plu)],
    "PLU, flat": lambda: [layers.Dense(4), PLU(0.0)],
    "PLU, learned": lambda: [layers.Dense(4), PLU(learnable=True)],
    "PLU, learned for each unit": lambda: [layers.Dense(4), PLU(learnable=True, shared_axes=())],
    "ReLU": lambda: [layers.Dense(4), layers.ReLU(max_value=1.5)],
}


@pytest.mark.parametrize("name", EXPORTED)
def test_what_keras_exports_as_onnx_is_read(name, tmp_path):
    if keras.backend.backend() != "torch":
        pytest.skip("Keras exports ONNX with PyTorch or TensorFlow")
    pytest.importorskip("onnxscript")
    model = sequential(*EXPORTED[name](), layers.Dense(2))
    model(POINTS)  # Keras exports a model that was called
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        model.export(str(tmp_path / "model.onnx"), format="onnx", verbose=False)
    net = load(tmp_path / "model.onnx")
    assert net.widths == (3, 4, 2)
    np.testing.assert_allclose(net(POINTS), model.predict(POINTS, verbose=0), rtol=1e-4, atol=1e-4)


class Dense(layers.Dense):
    """Not the Dense of Keras, whatever its name is."""

    def call(self, inputs):
        return super().call(inputs) ** 2


def tanh(x):
    return keras.ops.tanh(x)


def graph(make):
    x = keras.Input((3,))
    return keras.Model(x, make(x))


def twice(x):
    layer = layers.Dense(3)
    return layer(layer(x))


def branched(x):
    first = layers.Dense(3)(x)
    return layers.Add()([first, layers.Dense(3)(first)])


def passed_by(x):
    first = layers.Dense(3)(x)
    return [first, layers.Dense(3)(first)]


def curved_output():
    if "loss" in MLPRegressor().get_params():
        return fitted(MLPRegressor, "two outputs", loss="poisson")
    model = fitted(MLPRegressor, "two outputs")  # an older scikit-learn has one loss
    model.out_activation_ = "exp"
    return model


def quantised():
    model = sequential(layers.Dense(2))
    model.layers[0].quantize("int8")
    return model


MESSAGES = {
    "no layers": (lambda: "text", "this needs a built Sequential or functional model of Keras, got builtins.str"),
    "not built": (
        lambda: keras.Sequential([layers.Dense(2)]),
        "this needs a built Sequential or functional model of Keras, got Sequential",
    ),
    "tanh": (lambda: sequential(layers.Dense(2, activation="tanh", name="d")), "'d', Dense: activation 'tanh'"),
    "a function": (lambda: sequential(layers.Dense(2, activation=tanh)), "test_model_objects.tanh' is not supported"),
    "Softmax": (lambda: sequential(layers.Softmax()), "Softmax: not piecewise-linear or not supported"),
    "a layer of one's own": (lambda: sequential(Dense(2)), "test_model_objects.Dense: not piecewise-linear"),
    "a threshold": (lambda: sequential(layers.ReLU(threshold=0.5)), "threshold 0.5 makes the function jump"),
    "images": (lambda: sequential(layers.Flatten(), shape=(3, 1)), "this model's has shape (None, 3, 1)"),
    "int8": (quantised, "the layer is quantised (int8)"),
    "a layer that is called twice": (
        lambda: graph(twice),
        "must be called exactly once, on the output",
    ),
    "a sum of two layers": (
        lambda: graph(branched),
        "must be called exactly once, on the output",
    ),
    "two outputs": (lambda: graph(passed_by), "the output of the model must be that of its last layer"),
    "dropout that is always on": (
        lambda: graph(lambda x: layers.Dropout(0.5)(x, training=True)),
        "must be called exactly once",
    ),
    "a function between layers": (lambda: graph(keras.ops.tanh), "functions between layers are not supported"),
    "MLPRegressor, not fitted": (MLPRegressor, "or a Pipeline that ends in one, got MLPRegressor"),
    "MLPRegressor, tanh": (lambda: fitted(MLPRegressor, "one output", activation="tanh"), "has activation='tanh'"),
    "MLPRegressor, exp": (curved_output, "ends in exp, which is not piecewise-linear"),
    "scikit-learn, another step": (
        lambda: make_pipeline(PolynomialFeatures(), LinearRegression()),
        "the step PolynomialFeatures before the model is not affine or not supported; supported: StandardScaler, ",
    ),
    "scikit-learn, a step of one's own": (
        lambda: make_pipeline(type("StandardScaler", (StandardScaler,), {})(), LinearRegression()),
        "test_model_objects.StandardScaler before the model",
    ),
    "scikit-learn, steps that are not fitted": (
        lambda: make_pipeline(RobustScaler(), LinearRegression().fit(X, TARGETS["one output"])),
        "the step RobustScaler has no n_features_in_; fit the Pipeline first",
    ),
    "scikit-learn, exp": (lambda: PoissonRegressor().fit(X, TARGETS["two classes"]), "got PoissonRegressor"),
    "scikit-learn, no model": (lambda: Pipeline([("none", "passthrough")]), "the last step must be a fitted model"),
    "scikit-learn, only a step": (lambda: make_pipeline(StandardScaler()), "got StandardScaler without"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name):
    make, text = MESSAGES[name]
    take = from_sklearn if name.startswith(("MLP", "scikit-learn")) else from_keras
    with pytest.raises(ValueError, match=re.escape(text)) as error:
        take(make())
    assert "\n" not in str(error.value)
