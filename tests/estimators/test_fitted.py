"""What a fitted estimator hands out: the same function in every form."""

import dataclasses
import functools
import json

import numpy as np
import pytest
from compilers import call_c

from plunit.ensemble import ACTIVATIONS, MLP, forward
from plunit.ensemble.halving import Candidate
from plunit.ensemble.mlp import PIECEWISE
from plunit.functional import formula
from plunit.pieces import load, load_json
from plunit.sklearn import PLURegressor
from plunit.sklearn.network_estimator import _best_shape

RNG = np.random.default_rng(0)
X = RNG.normal([3, -200, 0.01], [1, 50, 0.001], (150, 3))
Z = (X - X.mean(0)) / X.std(0)
Y = np.stack([1e3 * np.abs(Z[:, 0]), Z[:, 1] * Z[:, 2] - 5], axis=1)
FAR = RNG.normal(size=(50, 3)) * 10 * X.std(0) + X.mean(0)
EVERYWHERE = np.concatenate([X, FAR])
HIDDEN = [(), (6,), (6, 5)]


def fitted(activation="plu", hidden=(6, 5), y=Y, x=X, n_best=3):
    options = {"n_init": 8, "max_iter": 100, "random_state": 0, "alpha": 0.3, "c": 0.5}
    return PLURegressor(hidden, activation, n_best=n_best, **options).fit(x, y)


@functools.cache
def shaped(activation, hidden=(6, 5)):
    """Return a model that tests only ask."""
    return fitted(activation, hidden)


def close(found, expected):
    """Compare to 1e-9 of the largest value of each output."""
    expected = np.asarray(expected).reshape(found.shape)
    assert (np.abs(found - expected).max(0) <= 1e-9 * np.abs(expected).max(0)).all()


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("activation", PIECEWISE)
def test_the_exact_network(activation, hidden):
    model = shaped(activation, hidden)
    close(model.network_(EVERYWHERE), model.predict(EVERYWHERE))


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "plu_learned"])
def test_the_layers_by_hand(activation, hidden):
    functions = {"plu": lambda z: formula(np, z, 0.3, 0.5), "relu": lambda z: np.maximum(z, 0), "tanh": np.tanh}
    act = functions.get(activation, lambda z: ACTIVATIONS[activation].value(z, 0.3, 0.5))
    model = shaped(activation, hidden)
    *first, (weight, bias) = zip(model.coefs_, model.intercepts_, strict=True)
    h = EVERYWHERE
    for w, b in first:
        h = act(h @ w + b)
    close(h @ weight + bias, model.predict(EVERYWHERE))


def test_it_is_the_function_that_was_learned():
    assert fitted(y=Z[:, 0] + 7).score(X, Z[:, 0] + 7) > 0.5


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("activation", [name for name, one in ACTIVATIONS.items() if one.module])
def test_modules_of_pytorch(activation, hidden):
    torch = pytest.importorskip("torch")
    model = shaped(activation, hidden)
    modules = model.to_torch()
    with torch.no_grad():
        close(modules(torch.from_numpy(EVERYWHERE)).numpy(), model.predict(EVERYWHERE))
    assert {part.dtype for part in modules.parameters()} == {torch.float64}


def test_an_activation_that_pytorch_lacks_is_an_error_not_plu(monkeypatch):
    pytest.importorskip("torch")
    model = fitted("silu")
    monkeypatch.setitem(ACTIVATIONS, "silu", dataclasses.replace(ACTIVATIONS["silu"], module=None))
    with pytest.raises(ValueError, match="silu has no PyTorch module"):
        model.to_torch()


def test_learned_shapes_are_learned():
    model = fitted("plu_learned", (6,), n_best=1)
    raw = model.theta_[-2:, 0]
    assert abs(1 / (1 + np.exp(-raw[0])) - 0.3) > 1e-3
    assert abs(np.exp(raw[1]) - 0.5) > 1e-3


@pytest.mark.parametrize("activation", ["plu", "relu", "plu_learned"])
def test_onnx_files(activation, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model = shaped(activation)
    model.save(tmp_path / "model.onnx")
    close(load(tmp_path / "model.onnx")(EVERYWHERE), model.predict(EVERYWHERE))
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: EVERYWHERE})
    close(found, model.predict(EVERYWHERE))


@pytest.mark.parametrize("activation", ["plu", "relu", "plu_learned"])
def test_c_files(activation, tmp_path):
    model = shaped(activation)
    model.save(tmp_path / "model.h")
    assert "the values differ from exact arithmetic by at most" in (tmp_path / "model.h").read_text()
    close(call_c("model", EVERYWHERE, 2, tmp_path), model.predict(EVERYWHERE))


def test_names_of_a_frame_are_in_the_files(tmp_path):
    pandas, onnx = (pytest.importorskip(name) for name in ("pandas", "onnx"))
    names = ["temp", "*/ a\nb", "z"]
    model = fitted(x=pandas.DataFrame(X, columns=names))
    for end in ("h", "json", "onnx"):
        model.save(tmp_path / f"model.{end}")
    assert "/* x[0] = temp\n   x[1] = * / a\\nb\n   x[2] = z */\n" in (tmp_path / "model.h").read_text()
    shown = ["temp", r"*/ a\nb", "z"]
    assert json.loads((tmp_path / "model.json").read_text())["inputs"] == shown
    (entry,) = onnx.load(tmp_path / "model.onnx").metadata_props
    assert (entry.key, json.loads(entry.value)) == ("inputs", shown)


def test_curves(tmp_path):
    """Of all rows, those of validation too."""
    x = RNG.normal(size=(60, 1))
    model = fitted(x=x, y=np.sin(x[:, 0]))
    close(model.curve_(x[:, 0]), model.predict(x))
    assert (model.curve_.low, model.curve_.high) == (x.min(), x.max())
    model.save(tmp_path / "model.json")
    close(load_json(tmp_path / "model.json")(x)[:, 0], model.predict(x))


def test_polygon_set():
    model = fitted(x=X[:, :2], y=Y[:, 0])
    polygons = model.polygons_
    spans = np.ptp(X[:, :2], axis=0)
    assert polygons.areas.sum() == pytest.approx(np.prod(spans))
    close(polygons(X[:, :2]), model.predict(X[:, :2]))


@pytest.mark.parametrize(("name", "inputs"), [("curve_", 1), ("polygons_", 2)])
def test_pieces_need_one_or_two_inputs(name, inputs):
    model = shaped("plu")
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"{name} is for models with {inputs} inputs?; this one has 3"):
        getattr(model, name)


@pytest.mark.parametrize("ask", [lambda m: m.network_, lambda m: m.curve_, lambda m: m.save("never.h")])
def test_tanh_has_no_pieces(ask):
    model = fitted("tanh", x=X[:, :1])
    with pytest.raises(AttributeError, match=r"tanh is not piecewise linear .*; fit with one of relu, plu, "):
        ask(model)


def test_the_spread_of_the_members():
    model = shaped("plu")
    mean, std = model.predict(FAR, return_std=True)
    values = forward(model._form(), model.theta_, FAR.T, 0.3, 0.5).T  # [members, rows, outputs]
    np.testing.assert_allclose(mean, values.mean(0), rtol=1e-9)
    np.testing.assert_allclose(std, values.std(0), rtol=1e-9)
    assert (std > 0).all()
    mean, std = fitted(y=Y[:, 0], n_best=1).predict(X, return_std=True)
    assert mean.shape == std.shape == (150,)
    assert (std == 0).all()


def test_the_table_of_candidates():
    model = shaped("plu")
    table = model.candidates_
    assert {len(column) for column in table.values()} == {8}
    assert sorted(table["start"]) == list(range(8))
    assert (np.diff(table["validation_loss"]) >= 0).all()
    assert sorted(np.bincount(table["fold"])) == [4, 4]  # each has all weight decays
    assert sorted(np.bincount(table["fold"][table["chosen"]])) == [1, 2]
    for fold in (0, 1):  # the best of each
        chosen = table["chosen"][table["fold"] == fold]
        assert chosen[: chosen.sum()].all()
    means = [table["validation_loss"][table["chosen"] & (table["fold"] == fold)].mean() for fold in (0, 1)]
    assert model.best_loss_ == pytest.approx(np.mean(means))  # of a fold with two members and of one with one
    assert model.best_loss_ > table["validation_loss"][0]
    assert (table["best_iter"] <= table["n_iter"]).all()
    assert sorted(table["n_iter"])[-4:] == [25, *[100] * 3]  # three, no fewer, are trained to the end
    assert table["n_iter"].min() == 13  # an eighth, to the next look


def candidate(width, loss):
    return Candidate(MLP((1, width, 1)), 0, loss, 1, 1, *(np.zeros(1) for _ in range(3)))


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([(8, 1.0), (9, 2.0), (9, 2.5), (8, 9.0)], (9, [2.0, 2.5])),  # the mean of the best two decides
        ([(9, 1.0), (8, 2.0), (8, 3.0), (9, np.inf)], (8, [2.0, 3.0])),
        ([(8, 1.0), (8, np.inf), (9, np.inf), (9, np.inf)], (8, [1.0])),
        ([(9, np.inf), (8, 1.0), (8, np.inf), (9, np.inf)], (8, [1.0])),
    ],
)
def test_the_best_shape(losses, expected):
    best = _best_shape([candidate(*one) for one in losses], 2)
    assert ({one.network.widths[1] for one in best}, [one.loss for one in best]) == ({expected[0]}, expected[1])
