import json

import pytest

import plunit
from plunit.lab import plan, store
from plunit.lab.errors import UserError
from plunit.lab.executors import here
from plunit.lab.run import run


def test_a_saved_plan_is_loaded(tmp_path, small):
    assert plan.load(tmp_path) == {}
    plan.save(tmp_path, small)
    assert plan.load(tmp_path) == small


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        json.dumps({"plunit": plunit.__version__}),
        json.dumps({"plunit": plunit.__version__, "experiments": {"sine": {"seeds": 3}}}),
        json.dumps({"plunit": plunit.__version__, "experiments": [1]}),
        json.dumps({"plunit": "0.0.1", "experiments": {}}),
        json.dumps(
            {
                "plunit": plunit.__version__,
                "experiments": {"no-such": {"seeds": 1, "activations": [], "engine": "eager", "steps": 0}},
            }
        ),
    ],
)
def test_a_record_that_is_not_ours_is_one_line(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(UserError) as error:
        plan.load(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_collected_results_have_all_seeds_and_unfinished_experiments_are_left_out(tmp_path, small):
    cells = plan.cells(small)
    with here() as executor:
        run(tmp_path, cells, executor, lambda cell: None)
    lines = []
    whole = plan.collect(tmp_path, small, lines.append)
    assert whole.names() == list(small)
    assert lines == []
    assert whole["sine", "plu"]["seed"].tolist() == [0, 1, 2]
    store.path_of(tmp_path, cells[0]).unlink()
    part = plan.collect(tmp_path, small, lines.append)
    assert part.names() == [name for name in small if name != cells[0].experiment]
    (line,) = lines
    assert line.startswith("sine is unfinished, or of another state of the program, and left out; run `plunit run sine")
    assert "--seeds 3" in line
    assert "--activations tanh,relu,plu,plu_learned" in line
