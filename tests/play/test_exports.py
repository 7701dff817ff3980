import dataclasses
import shlex
import sys

import numpy as np
import pytest
import torch
from commands import fit
from compilers import call_c

from plunit import pieces
from plunit.base.errors import UserError
from plunit.ensemble import ACTIVATIONS, MLP, forward, initial
from plunit.ensemble.mlp import in_units
from plunit.play.exports import export, torch_code
from plunit.play.session import Session
from plunit.play.targets import settings_of, task_of

ROWS = np.random.default_rng(0).uniform(-3, 5, (600, 2))
TARGETS = {
    "function": {"kind": "expression", "text": "40 + sin(x)", "low": 10, "high": 20},
    "surface": {"kind": "paper", "name": "saddle"},
    "curve": {"kind": "paper", "name": "parametric"},
    "drawing": {"kind": "drawn", "points": [[0, 1], [2, 5], [9, -3]]},
    "table": {"kind": "csv", "name": "rows.csv", "text": "x,z\n" + "".join(f"{a},{a * a}\n" for a, _ in ROWS)},
}


def trained(target, activation, steps=40):
    """Return what `export` takes, and the best network as a function x [n, in] -> [n, out]."""
    settings = settings_of({"target": target, "activations": [activation], "networks": 5, "seed": 3, "alpha": 0.3})
    task = task_of(target)
    session = Session(task, settings)
    for _ in range(steps):
        session.command("step")
        session.round(0.0)
    now = session._latest[0]
    assert now.step == steps
    best = int(np.argmin(now.loss))
    theta = in_units(now.network, now.theta[:, [best]], *task.scales)
    return (task, settings, now, session._batch), lambda x: forward(now.network, theta, x.T, 0.3, 1.0)[..., 0].T


def points(task, count=50):
    return np.random.default_rng(1).uniform(*task.box.T, (count, task.inputs))


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("activation", ["plu", "relu"])
def test_json_and_onnx_hold_the_network(target, activation, tmp_path):
    given, function = trained(target, activation)
    for form in ("json", "onnx"):
        reply = export(*given, form)
        path = tmp_path / reply.content["name"]
        path.write_bytes(reply.payload)
        assert path.name == f"{activation}_40.{form}"
        net = pieces.load_json(path) if form == "json" else pieces.load(path)
        x = points(given[0])
        np.testing.assert_allclose(net(x), function(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["function", "surface", "curve"])
def test_the_header_compiles_and_gives_the_values(name, tmp_path):
    given, function = trained(TARGETS[name], "plu_learned")
    reply = export(*given, "c")
    x = points(given[0])
    (tmp_path / reply.content["name"]).write_bytes(reply.payload)
    found = call_c("plu_learned_40", x, given[0].outputs, tmp_path)
    np.testing.assert_allclose(found, function(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_lines_repeat_the_network_to_the_bit(target, tmp_path, monkeypatch):
    given, _ = trained(target, "plu")
    task, _, now, _ = given
    monkeypatch.chdir(tmp_path)
    if "text" in target:
        (tmp_path / "rows.csv").write_text(target["text"])
    names = {}
    exec(export(*given, "fit").payload, names)
    best = int(np.argmin(now.loss))
    np.testing.assert_array_equal(names["trained"].theta[:, 0], now.theta[:, best])
    assert np.array_equal(names["task"].y, task.y)


USUAL = "--hidden=3,3 --activation=plu --starts=5 --seed=3 --"
COMMANDS = {
    "function": f"plunit fit --low=10.0 --high=20.0 {USUAL} '40 + sin(x)'",
    "surface": f"plunit fit --low=-3.0 --high=3.0 {USUAL} 'x ** 2 - y ** 2'",
    "table": f"plunit fit --target=z {USUAL} rows.csv",
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_lines_name_the_command_where_there_is_one(name):
    given, _ = trained(TARGETS[name], "plu", steps=1)
    lines = export(*given, "fit").payload.decode().splitlines()
    commands = [line.removeprefix("#   ") for line in lines if "plunit fit" in line]
    assert commands == ([COMMANDS[name]] if name in COMMANDS else [])


SPACES = {"name": "my  rows (1).csv", "text": TARGETS["table"]["text"].replace("z", "of  z", 1)}


@pytest.mark.parametrize(
    "target",
    [TARGETS["table"], {**TARGETS["table"], **SPACES}, *({"kind": "expression", "text": f"-abs(x{s})"} for s in " \n")],
    ids=["table", "spaces", "minus", "two lines"],
)
def test_the_command_runs(tmp_path, target):
    given, _ = trained(target, "plu", steps=1)
    command = next(line[4:] for line in export(*given, "fit").payload.decode().splitlines() if "plunit fit" in line)
    if "name" in target:
        (tmp_path / target["name"]).write_text(target["text"])
    code, _, err = fit(tmp_path, "--quick", *shlex.split(command)[2:])
    assert code == 0, err


def test_a_name_cannot_put_code_into_the_lines():
    evil = "x.csv\nraise SystemExit('executed')\r\u2028print(1)"
    given, _ = trained({**TARGETS["table"], "name": evil}, "plu", steps=1)
    code = [line for line in export(*given, "fit").payload.decode().splitlines() if not line.startswith("#")]
    assert not [line for line in code if "executed" in line and not line.startswith("task = task_of(")]
    compile(export(*given, "fit").payload, "fit", "exec")
    torch_lines = export(*given, "torch").payload.decode().splitlines()
    assert not [line for line in torch_lines if "executed" in line and not line.startswith("#")]


@pytest.mark.parametrize("form", ["c", "onnx", "json", "torch"])
def test_smooth_and_diverged_networks_are_said(form):
    given, _ = trained(TARGETS["function"], "tanh", steps=1)
    if form == "torch":
        assert export(*given, form).content["name"] == "tanh_1_torch.py"
    else:
        with pytest.raises(UserError, match="tanh is not piecewise linear"):
            export(*given, form)
    given[2].loss[:] = np.nan
    with pytest.raises(UserError, match="all tanh networks have diverged; use a lower learning rate"):
        export(*given, form)


def test_a_missing_package_is_said(monkeypatch):
    given, _ = trained(TARGETS["function"], "plu", steps=1)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"pip install 'plunit\[fit\]'"):
        export(*given, "onnx")


@pytest.mark.parametrize("activation", [name for name, one in ACTIVATIONS.items() if one.module])
@pytest.mark.parametrize("widths", [(1, 3, 4, 2), (2, 3)])
def test_the_program_has_the_values_of_the_member(activation, widths):
    network = MLP(widths, activation)
    theta = initial(network, [np.random.default_rng(3)], alpha=0.25, c=0.6).astype(np.float64)
    theta += np.random.default_rng(9).normal(0, 0.3, theta.shape)  # biases start as 0
    names = {}
    exec(torch_code(network, theta, 0.25, 0.6), names)
    x = np.random.default_rng(1).uniform(-3, 3, (50, widths[0]))
    with torch.no_grad():
        found = names["model"](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found.T, forward(network, theta, x.T, 0.25, 0.6)[..., 0], rtol=1e-6, atol=1e-6)


def test_an_activation_that_pytorch_lacks_is_an_error_not_plu(monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, "silu", dataclasses.replace(ACTIVATIONS["silu"], module=None))
    network = MLP((1, 3, 1), "silu")
    with pytest.raises(ValueError, match=r"silu has no PyTorch module; choose one of tanh, .*elu"):
        torch_code(network, np.zeros((network.parameters, 1)))
