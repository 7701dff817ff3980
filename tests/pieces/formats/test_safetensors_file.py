"""Networks as safetensors files: the same numbers come back, and a list of layers says what the arrays are."""

import json

import numpy as np
import pytest
from random_networks import random_network, scaled_network

from plunit.pieces import activation, load, network, save_safetensors

pytest.importorskip("safetensors")
from safetensors.numpy import save_file


def numbers(net):
    layers = [array for layer in net.layers for array in (layer.weight, layer.bias)]
    return [*layers, *(array for _, f in net.hidden for array in (f.knots, f.slopes, f.at_zero))]


@pytest.mark.parametrize("make", [random_network, scaled_network])
@pytest.mark.parametrize("seed", range(12))
def test_every_number_comes_back(make, seed, tmp_path):
    net = make(seed, 3, 5, 3)
    save_safetensors(net, tmp_path / "net")
    for before, after in zip(numbers(net), numbers(load(tmp_path / "net")), strict=True):
        np.testing.assert_array_equal(after, before)


KINDS = {
    "plu": ({"alpha": 0.25, "c": 2.0}, activation.plu(0.25, 2.0)),
    "leaky_relu": ({"slope": "slopes"}, activation.leaky_relu(np.array([0.5, 0.25]))),
    "hardtanh": ({"low": -2, "high": 0.5}, activation.hardtanh(-2, 0.5)),
    "relu": ({}, activation.relu()),
    "relu6": ({}, activation.relu6()),
    "hardsigmoid": ({}, activation.hardsigmoid()),
    "absolute": ({}, activation.absolute()),
    "identity": ({}, activation.identity()),
}
ARRAYS = {
    "w": np.array([[1.0], [-2.0]], dtype=np.float32),
    "b": np.array([0.5, 0.25]),
    "slopes": np.array([0.5, 0.25], dtype=np.float16),
    "whole": np.array([1, 2]),
}
LINEAR = {"linear": {"weight": "w", "bias": "b"}}


def write(path, layers, arrays=ARRAYS):
    text = layers if isinstance(layers, str) else json.dumps(layers)
    save_file(arrays, path, metadata={"layers": text})


@pytest.mark.parametrize("kind", KINDS)
def test_activations_by_name(kind, tmp_path):
    options, f = KINDS[kind]
    write(tmp_path / "net", [LINEAR, {kind: options}])
    x = np.linspace(-9, 9, 50)[:, None]
    expected = network([(ARRAYS["w"], ARRAYS["b"]), f])(x)
    np.testing.assert_array_equal(load(tmp_path / "net")(x), expected)


def test_a_bias_may_be_left_out(tmp_path):
    write(tmp_path / "net", [{"linear": {"weight": "w"}}])
    assert load(tmp_path / "net")([[3.0]]).tolist() == [[3.0, -6.0]]


REFUSED = {
    "no list": ("{}", "its metadata have no list `layers`"),
    "no JSON": ("[", "Expecting value"),
    "deep": ("[" * 100_000, "is a safetensors file: "),
    "no layer": ([], "a network needs at least one affine layer"),
    "a number": ([3], "layer 0 must be an object"),
    "two keys": ([{"relu": {}, "plu": {}}], "layer 0 must be an object"),
    "another layer": (
        [LINEAR, {"tanh": {}}],
        "layer 1 is 'tanh' with [], which is not a known layer; known are linear, ",
    ),
    "another option": ([LINEAR, {"plu": {"beta": 1.0}}], "layer 1 is 'plu' with ['beta']"),
    "no weight": ([{"linear": {"bias": "b"}}], "layer 0 is 'linear' with ['bias']"),
    "a name that is not there": (
        [{"linear": {"weight": "v"}}],
        "layer 0 names the array 'v', which is not in the file",
    ),
    "integers": ([LINEAR, {"leaky_relu": {"slope": "whole"}}], "slope must be floating-point numbers, got int64"),
    "true": ([LINEAR, {"plu": {"c": True}}], "c must be a number or the name of an array, got true"),
    "a list": ([LINEAR, {"plu": {"c": [1]}}], "c must be a number or the name of an array, got [1]"),
    "a negative slope": ([LINEAR, {"plu": {"alpha": -1.0}}], "alpha must be finite and >= 0"),
    "shapes": ([{"linear": {"weight": "w", "bias": "w"}}], "weight must be [out, in] and bias [out]"),
    "a number as weight": ([{"linear": {"weight": 1.0}}], "layer 0: weight must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_network_is_one_line(name, tmp_path):
    layers, reason = REFUSED[name]
    write(tmp_path / "net", layers)
    with pytest.raises(ValueError, match="is a safetensors file: ") as error:
        load(tmp_path / "net")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_arrays_alone_do_not_make_a_network(tmp_path):
    save_file(ARRAYS, tmp_path / "net")
    with pytest.raises(
        ValueError, match=r"does not say how its arrays make a network; plunit\.pieces.save_safetensors"
    ):
        load(tmp_path / "net")


def test_an_ensemble_is_refused(tmp_path):
    from plunit.pieces import ensemble

    with pytest.raises(TypeError, match=r"pick one with \.member"):
        save_safetensors(ensemble([(np.ones((1, 1, 2)), np.ones((1, 2)))]), tmp_path / "net")


def test_a_key_that_stands_twice_is_refused(tmp_path):
    layers = '[{"linear": {"weight": "w", "bias": "b"}, "linear": {"weight": "w", "bias": "b"}}]'
    save_file(ARRAYS, tmp_path / "net", metadata={"layers": layers})
    with pytest.raises(ValueError, match="a layer has the keys linear, linear, one of them twice"):
        load(tmp_path / "net")
