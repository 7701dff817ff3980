"""Plans: what users ask for, what run.json keeps, how results add up, and files that are no plan."""

import dataclasses
import json

import pytest

import plunit
from plunit.base.errors import UserError
from plunit.lab import plan
from plunit.lab.plan import Part

PLAN = {
    "sine": Part("sine", 3, ("plu", "tanh"), "numpy"),
    "cifar10": Part("cifar10", 2, ("plu",), "", {"steps": 7}),
    "sine+lr=0.5+widths=1x8x1": Part("sine", 2, ("relu",), "numpy", {"lr": 0.5, "widths": (1, 8, 1)}),
}
USUAL = ("tanh", "relu", "plu", "identity")


def test_a_saved_plan_is_loaded(tmp_path):
    assert plan.load(tmp_path) == {}
    plan.save(tmp_path, PLAN)
    assert plan.load(tmp_path) == PLAN


def test_commands_repeat_their_part():
    assert [part.command() for part in PLAN.values()] == [
        "plunit run sine --seeds 3 --activations plu,tanh --engine numpy",
        "plunit run cifar10 --set steps=7 --seeds 2 --activations plu",
        "plunit run sine --set lr=0.5 --set widths=1,8,1 --seeds 2 --activations relu --engine numpy",
    ]


def test_results_add_up_and_what_is_replaced_is_said():
    lines = []
    more = Part("sine", 3, ("relu", "plu"), "numpy")
    result = plan.merge_plans(PLAN, {"sine": more}, lines.append)
    assert result == PLAN | {"sine": dataclasses.replace(more, activations=("plu", "tanh", "relu"))}
    assert lines == []
    other = dataclasses.replace(more, seeds=5)
    assert plan.merge_plans(PLAN, {"sine": other}, lines.append)["sine"] == other
    (line,) = lines
    assert PLAN["sine"].command() in line


@pytest.mark.parametrize(
    ("name", "keywords", "expected"),
    [
        ("cifar10", {"assignments": ["steps=500"]}, Part("cifar10", 1, USUAL, "", {"steps": 500})),
        ("cifar10", {"seeds": 3, "activations": "gelu"}, Part("cifar10", 3, ("gelu",))),
        ("sine", {"engine": "numpy", "seeds": 64, "activations": "plu"}, Part("sine", 64, ("plu",), "numpy")),
        *(
            ("inverse", {"seeds": 1, "activations": text}, Part("inverse", 1, ("plu", "leaky_relu")))
            for text in ("plu,leaky_relu", " plu ,leaky_relu,", "plu,leaky_relu,plu")
        ),
    ],
)
def test_what_is_asked_for(tmp_path, name, keywords, expected):
    assert plan.for_run(tmp_path, name, **keywords) == {name: expected}


def test_what_the_folder_has_is_the_default(tmp_path):
    stored = Part("sine", 7, ("tanh",), "numpy")
    plan.save(tmp_path, {"sine": stored})
    asked = plan.for_run(tmp_path, "sine", activations="relu,gelu")
    assert asked["sine"] == Part("sine", 7, ("relu", "gelu"), "numpy")
    assert plan.merge_plans({"sine": stored}, asked, pytest.fail)["sine"].activations == ("tanh", "relu", "gelu")
    assert plan.for_run(tmp_path, "sine", assignments=["lr=0.1"], engine="numpy")["sine+lr=0.1"].seeds == 1024


def test_reproduce_keeps_long_experiments_short_unless_full():
    names = ["sine, cifar10", "capacity,frequency", "cost", "inverse", "reach"]
    short = plan.for_reproduce(names, seeds=64, engine="numpy")
    seeds = {name: part.seeds for name, part in short.items()}
    assert seeds == {"sine": 64, "cifar10": 1, "inverse": 6, "reach": 64} | {
        "capacity": 64,
        "frequency": 64,
        "cost": 31,
    }
    changes = {name: part.changes for name, part in short.items() if part.changes}
    assert changes == {"cifar10": {"steps": 500}}
    full = plan.for_reproduce(names, engine="numpy", full=True)
    assert [part.changes for part in full.values()] == [{}] * 7
    assert (full["sine"].seeds, full["capacity"].seeds) == (1024, 256)
    everything = plan.for_reproduce(engine="numpy")
    assert "compare" not in everything
    assert {"sine", "cost", "depth-scaled"} <= everything.keys()


NUMBERS = "must be a whole number (1 to 100000), got"


def edited(**changes):
    part = {"base": "cifar10", "seeds": 1, "activations": ["plu"], "engine": "", "changes": {"steps": 2}}
    return {"plunit": plunit.__version__, "experiments": {"cifar10": {**part, **changes}}}


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (("sine", {"seeds": 10**12}), f"seeds {NUMBERS} 1000000000000"),
        (("cifar10", {"activations": "elu"}), "unknown activation 'elu'; choose one of tanh, relu, plu"),
        (("inverse", {"activations": "relu"}), "choose one of plu, leaky_relu, tanh"),
        (("sine", {"activations": " , "}), "' , ' names no activation"),
        (("sine", {"engine": "jax"}), "unknown engine 'jax'; choose one of native, numpy"),
        (("sin", {}), "did you mean sine?"),
        (("nothing", {}), "unknown experiment 'nothing'; choose one of capacity,"),
        (("compare", {}), "compare has its own command"),
        (("sine", {"assignments": ["lr=0"]}), "lr must be a number (1e-09 to 100), got 0.0"),
        (("depth", {"assignments": ["low=7"]}), "low must be below high"),
        (("depth", {"assignments": ["depths=5,3"]}), "depths must increase"),
        (("sine", {"assignments": ["lr"]}), "a setting must be field=value"),
        (("sine", {"assignments": ["lrr=1"]}), "did you mean lr?"),
        (("reach", {"assignments": ["__class__=1"]}), "unknown field '__class__'"),
        (("reach", {"assignments": ["batch=3"]}), "batch must be 0"),
        (("sine", {"assignments": ["widths=2,3,1"]}), "widths for sine must be 1,...,1"),
        (("sine", {"assignments": ["widths=1,1"]}), "with hidden layers, got 1,1"),
        (("capacity", {"assignments": ["units=2,4"]}), "their width one of units and their number one of layers, got"),
        (("capacity", {"assignments": ["widths=1,3,4,1"]}), "hidden layers must be equally wide"),
        (("frequency", {"assignments": ["frequencies=2,1"]}), "frequencies must increase"),
        (("sine", {"assignments": ["adam=keras"]}), "adam must be pytorch or tensorflow, got 'keras'"),
        (("sine", {"assignments": ["checkpoints=5,5"]}), "checkpoints must increase"),
        (("surface", {"assignments": ["points=1001"]}), "points must be at most 1000, got 1001"),
        ([","], "names no experiment"),
        (["compare"], "not part of the reproduction"),
        ("{", "not written by plunit"),
        ("[" * 100_000, "not written by plunit"),
        ({"plunit": plunit.__version__}, "not written by plunit"),
        ({"plunit": "0.0.1", "experiments": {}}, "holds results of plunit 0.0.1"),
        ({**edited(), "x": " " * (1 << 20)}, "the limit is 1,048,576"),
        ({**edited(), "experiments": {"sine": {"seeds": 3}}}, "sine needs a field 'base'"),
        (edited(base="no-such"), "unknown experiment 'no-such'"),
        (edited(seeds="x"), f"seeds {NUMBERS} 'x'"),
        (edited(steps=5), "unknown field 'steps' of cifar10"),
        (edited(engine={}), "engine must be a string"),
        (edited(engine="native"), "does not take engine 'native'"),
        (edited(activations=["nosuch"]), "unknown activation of cifar10 'nosuch'; choose one of tanh, relu"),
        (edited(activations=[["plu"]]), "activations must be a list of names, got ['plu']"),
        (edited(activations=["plu", "plu"]), "activations must differ"),
        (edited(changes={"lr": 0.5}), "must be named cifar10+lr=0.5"),
        (edited(changes=[]), "changes must be an object"),
        (edited(changes={"nothing": 1}), "unknown field 'nothing'"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_messages(tmp_path, ask, said):
    """`plunit run` for a tuple, `plunit reproduce` for a list, and the content of run.json."""
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        answer(tmp_path, ask)
    assert said in str(error.value)
    assert isinstance(ask, tuple | list) or str(tmp_path) in str(error.value)


def answer(folder, ask):
    if isinstance(ask, tuple):
        return plan.for_run(folder, ask[0], **ask[1])
    if isinstance(ask, list):
        return plan.for_reproduce(ask)
    (folder / "run.json").write_text(ask if isinstance(ask, str) else json.dumps(ask))
    return plan.load(folder)
