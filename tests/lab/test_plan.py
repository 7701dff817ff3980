"""run.json: what is kept of a plan, how results add up, and files that are no plan."""

import dataclasses
import json

import numpy as np
import pytest

import plunit
from plunit.base.errors import UserError
from plunit.lab import plan, store
from plunit.lab.plan import Part

PLAN = {
    "sine": Part("sine", 3, ("plu", "tanh"), "numpy"),
    "warp": Part("warp", 2, ("plu",), "", 7),
    "sine+lr=0.5+widths=1x8x1": Part("sine", 2, ("relu",), "numpy", 0, {"lr": 0.5, "widths": (1, 8, 1)}),
}


def test_a_saved_plan_is_loaded(tmp_path):
    assert plan.load(tmp_path) == {}
    plan.save(tmp_path, PLAN)
    assert plan.load(tmp_path) == PLAN


def test_commands_repeat_their_part():
    assert [part.command() for part in PLAN.values()] == [
        "plunit run sine --seeds 3 --activations plu,tanh --engine numpy",
        "plunit run warp --seeds 2 --steps 7 --activations plu",
        "plunit run sine --seeds 2 --activations relu --engine numpy --set lr=0.5 --set widths=1,8,1",
    ]


HEAD = {"plunit": plunit.__version__}
PART = {"base": "warp", "seeds": 1, "activations": ["plu"], "engine": "", "steps": 2, "changes": {}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"plunit": ' * 50_000,
        json.dumps(HEAD),
        json.dumps({**HEAD, "experiments": {"sine": {"seeds": 3}}}),
        json.dumps({**HEAD, "experiments": [1]}),
        json.dumps({"plunit": "0.0.1", "experiments": {}}),
        json.dumps({**HEAD, "experiments": {"no-such": {**PART, "base": "no-such"}}}),
        json.dumps({**HEAD, "x": " " * (1 << 20), "experiments": {}}),
    ],
    ids=lambda text: text[:40],
)
def test_a_record_that_is_not_ours_is_one_line(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        plan.load(tmp_path)
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": "x"}, "seeds must be a whole number from 1 to 100,000"),
        ({"seeds": 0}, "seeds must be a whole number"),
        ({"seeds": 10**12}, "seeds must be a whole number"),
        ({"seeds": True}, "seeds must be a whole number"),
        ({"seeds": -3}, '"seeds": -3'),
        ({"steps": -5}, "steps must be a whole number"),
        ({"steps": "x"}, "steps must be a whole number"),
        ({"engine": {}}, "engine must be a text"),
        ({"engine": "native"}, "does not take engine 'native'"),
        ({"activations": ["nosuch"]}, "activations must be among plu, leaky_relu"),
        ({"activations": [["plu"]]}, "activations must be among"),
        ({"activations": []}, "must not be empty or repeated"),
        ({"activations": ["plu", "plu"]}, "must not be empty or repeated"),
        ({"changes": {"lr": 0.5}}, "must be named"),
        ({"changes": {"lr": "x"}}, "lr must be a number"),
        ({"changes": {"nothing": 1}}, "unknown field 'nothing'"),
    ],
    ids=str,
)
def test_a_plan_edited_into_nonsense_is_one_line(tmp_path, changes, said):
    (tmp_path / "run.json").write_text(json.dumps({**HEAD, "experiments": {"warp": {**PART, **changes}}}))
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        plan.load(tmp_path)
    assert str(tmp_path / "run.json") in str(error.value)
    assert said in str(error.value)


def test_results_add_up_and_what_is_replaced_is_said():
    lines = []
    more = Part("sine", 3, ("relu", "plu"), "numpy")
    merged = plan.merged(PLAN, {"sine": more}, lines.append)
    assert merged["sine"].activations == ("plu", "tanh", "relu")
    assert {name: merged[name] for name in merged if name != "sine"} == {n: PLAN[n] for n in PLAN if n != "sine"}
    assert lines == []
    other = dataclasses.replace(more, seeds=5)
    assert plan.merged(PLAN, {"sine": other}, lines.append)["sine"] == other
    (line,) = lines
    old = "plunit run sine --seeds 3 --activations plu,tanh --engine numpy"
    assert line.startswith(f"sine: the tables no longer show the results of `{old}`")


def test_collected_results_have_all_seeds_and_unfinished_activations_are_left_out(tmp_path):
    part = Part("inverse", 3, ("relu", "tanh"))
    cells, lines = part.cells(), []
    have = {cell: {"seed": np.array(cell.seeds), "x": np.full((2, 1), cell.first)} for cell in cells}
    whole = plan.collect({"inverse": part}, have, tmp_path, lines.append)
    assert list(whole["inverse"]) == ["relu", "tanh"]
    assert whole["inverse"]["relu"]["seed"].tolist() == [0, 1, 2]
    assert whole["inverse"]["relu"]["x"].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert lines == []
    store.write(tmp_path, cells[1], have.pop(cells[1]))  # read from the disk
    del have[cells[5]]
    assert list(plan.collect({"inverse": part}, have, tmp_path, lines.append)["inverse"]) == ["relu"]
    (line,) = lines
    assert line.startswith("inverse with tanh is left out: it is unfinished, or its source has changed since; run `")
    assert f"plunit run inverse --seeds 3 --activations relu,tanh --out {tmp_path}" in line
