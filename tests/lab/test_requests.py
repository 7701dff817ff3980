"""What users ask for: defaults, what the folder has, and requests that cannot be met."""

import pytest

from plunit.base.errors import UserError
from plunit.lab import plan
from plunit.lab.plan import Part


def test_steps_and_seeds_of_long_experiments(tmp_path):
    ask = plan.one
    assert ask(tmp_path, "cifar10", steps=500)["cifar10"] == Part(
        "cifar10", 1, ("tanh", "relu", "plu", "identity"), "", 500
    )
    assert ask(tmp_path, "cifar10", seeds=3, activations="gelu")["cifar10"] == Part(
        "cifar10", 3, ("gelu",), "", 100_000
    )
    assert ask(tmp_path, "sine", engine="numpy", quick=True)["sine"].seeds == 64


@pytest.mark.parametrize("text", ["plu,relu", "plu, relu", " plu ,relu,", "plu,relu,plu"])
def test_activations_are_names_with_commas(tmp_path, text):
    assert plan.one(tmp_path, "warp", activations=text.replace("relu", "leaky_relu"))["warp"].activations == (
        "plu",
        "leaky_relu",
    )


@pytest.mark.parametrize(
    ("name", "keywords", "said"),
    [
        ("sine", {"steps": 5}, "--steps is for cifar10, cifar10-gain, warp, density"),
        ("cifar10", {"steps": 0}, "--steps must be a whole number from 1"),
        ("cifar10", {"seeds": 0}, "--seeds must be a whole number from 1 to 100,000, got 0"),
        ("sine", {"seeds": 10**12}, "got 1000000000000"),
        ("cifar10", {"activations": "elu"}, "unknown activation 'elu'; cifar10 takes tanh, relu, plu"),
        ("density", {"activations": "plu"}, "density takes gaussian, plain"),
        ("sine", {"activations": " , "}, "--activations must name an activation"),
        ("sine", {"engine": "jax"}, "unknown engine 'jax'"),
        ("sin", {}, "unknown experiment 'sin'; did you mean sine?"),
        ("nothing", {}, "unknown experiment 'nothing'; `plunit list`"),
        ("compare", {}, "compare has a command of its own"),
        ("sine", {"assignments": ["lr=0"]}, "lr must be a number"),
        ("sine", {"assignments": ["low=-1e308"]}, "low must be a number (-1e+06 to 1e+06)"),
        ("depth", {"assignments": ["low=7"]}, "low must be below high"),
        ("depth", {"assignments": ["depths=5,3"]}, "depths must increase"),
        ("map-sine", {"assignments": ["fit.=3"]}, "unknown field 'fit.'"),
        ("map-sine", {"assignments": ["__class__.lr=1"]}, "unknown field '__class__.lr'"),
        ("warp", {"steps": 3, "assignments": ["steps=5"]}, "choose either --steps or --set steps="),
    ],
)
def test_a_request_that_cannot_be_met_is_one_line(tmp_path, name, keywords, said):
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        plan.one(tmp_path, name, **keywords)
    assert said in str(error.value)


def test_what_the_folder_has_is_the_default(tmp_path):
    stored = Part("sine", 7, ("tanh",), "numpy")
    plan.save(tmp_path, {"sine": stored})
    asked = plan.one(tmp_path, "sine", activations="relu,gelu")
    assert asked["sine"] == Part("sine", 7, ("relu", "gelu"), "numpy")
    assert plan.merged({"sine": stored}, asked, pytest.fail)["sine"].activations == ("tanh", "relu", "gelu")
    assert plan.one(tmp_path, "sine", assignments=["lr=0.1"], engine="numpy")["sine+lr=0.1"].seeds == 1024


def test_reproduce_keeps_long_experiments_short_unless_full(tmp_path):
    names = ["sine, cifar10", "density,density-wine", "inverse", "map-sine"]
    short = plan.everything(tmp_path, names, seeds=64, engine="numpy")
    seeds = {name: part.seeds for name, part in short.items()}
    assert seeds == {"sine": 64, "cifar10": 1, "density": 5, "density-wine": 5, "inverse": 5, "map-sine": 8}
    steps = {name: part.steps for name, part in short.items()}
    assert steps == {"sine": 0, "cifar10": 500, "density": 300, "density-wine": 200, "inverse": 0, "map-sine": 0}
    full = plan.everything(tmp_path, names, engine="numpy", full=True)
    assert (full["cifar10"].steps, full["density"].steps, full["sine"].seeds) == (100_000, 3000, 1024)
    everything = plan.everything(tmp_path, engine="numpy")
    assert "compare" not in everything
    assert {"sine", "warp", "depth-scaled"} <= everything.keys()
    with pytest.raises(UserError, match="not part of the reproduction"):
        plan.everything(tmp_path, ["compare"])


@pytest.mark.parametrize("only", [[","], [""], [" , "]])
def test_a_list_of_no_experiment_is_not_all_of_them(tmp_path, only):
    with pytest.raises(UserError, match="--only must name an experiment"):
        plan.everything(tmp_path, only)
