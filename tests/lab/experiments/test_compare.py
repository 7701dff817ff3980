"""One's own table: paired splits, standardised by training rows only, and all pairs compared."""

import re

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.data.tables import Table, read_columns, read_table
from plunit.ensemble import ACTIVATIONS
from plunit.lab import plan, running
from plunit.lab.experiment import catalogue
from plunit.lab.train import compare as run
from plunit.lab.train.compare import Split, TableRows

ROWS = 60


@pytest.fixture
def table(tmp_path):
    """A smooth function of two columns and a useless one."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 3)) * [1, 100, 0.01] + [0, 5, -3]
    y = 1000 * np.sin(x[:, 0]) + x[:, 1]
    path = tmp_path / "waves.csv"
    rows = "\n".join(",".join(map(repr, row)) for row in np.column_stack([x, y]).tolist())
    path.write_text(f"a,b,c,height\n{rows}\n")
    return path


def wanted(folder, table, **options):
    assignments = options.pop("assignments", ["widths=4", "steps=40", "batch=16"])
    named = plan.for_table(table, "height", options.pop("inputs", ""), pytest.fail)
    return plan.for_run(folder, "compare", assignments=assignments, table=named, **options)


def computed(folder, table, activation, **options):
    (part,) = wanted(folder, table, seeds=3, activations=activation, **options).values()
    (cell,) = part.cells()
    return part.experiment().spec, part.experiment().compute(cell, folder)


def rows_of(path):
    return TableRows(read_columns(path, "height", (), pytest.fail))


def test_a_split_is_standardised_by_its_training_rows(table):
    found = read_table(table, "height", (), pytest.fail)
    split = Split(rows_of(table), 0.25, np.random.default_rng(5))
    assert sorted([*split.train, *split.test]) == list(range(ROWS))
    assert len(split.test) == 15
    x, y = split.rows(split.train)
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose([*x.std(0), y.std()], 1, rtol=1e-5)
    train = np.column_stack([found.x, found.y])[split.train]
    expected = (found.x[split.test] - train[:, :-1].mean(0)) / train[:, :-1].std(0)
    np.testing.assert_allclose(split.rows(split.test)[0], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("activation", ["tanh", "plu", "plu_learned"])
@pytest.mark.parametrize("batch", [16, 4096])
def test_losses_are_those_of_the_stored_weights(tmp_path, table, activation, batch):
    options = ["widths=4", "steps=40", f"batch={batch}"]
    spec, arrays = computed(tmp_path, table, activation, assignments=options)
    for i, seed in enumerate(arrays["seed"]):
        split = Split(rows_of(table), spec.test, np.random.default_rng(seed))
        theta = arrays["theta"][:, i]
        weights = [theta[:12].reshape(4, 3), theta[12:16], theta[16:20].reshape(1, 4), theta[20:21]]
        shape = (0.1, 1.0)
        if activation == "plu_learned":
            shape = (1 / (1 + np.exp(-theta[21])), np.exp(theta[22]))
        x, y = split.rows(split.test)
        hidden = ACTIVATIONS[activation].value(x @ weights[0].T + weights[1], *shape)
        output = (hidden @ weights[2].T + weights[3])[:, 0]
        np.testing.assert_allclose(arrays["test_loss"][i], ((output - y) ** 2).mean(), rtol=1e-4)
        np.testing.assert_allclose(arrays["baseline"][i], (y**2).mean(), rtol=1e-5)
    assert arrays["test_curve"].shape == (20, 3)
    np.testing.assert_array_equal(arrays["test_curve"][-1], arrays["test_loss"])


def test_all_activations_get_the_same_splits_starts_and_batches(tmp_path, table):
    (_, tanh), (_, relu) = (computed(tmp_path, table, activation) for activation in ("tanh", "relu"))
    np.testing.assert_array_equal(tanh["baseline"], relu["baseline"])
    _, short = computed(tmp_path, table, "tanh", assignments=["widths=4", "steps=1", "batch=16"])
    _, other = computed(tmp_path, table, "relu", assignments=["widths=4", "steps=1", "batch=16"])
    # Adam's first step moves each weight by lr: what is left of the difference are the starts
    np.testing.assert_allclose(short["theta"], other["theta"], atol=0.021)


def test_a_comparison_makes_a_report_with_a_matrix_of_all_pairs(tmp_path, table, console):
    out = tmp_path / "out"
    plan = wanted(out, table, seeds=7, activations="relu, plu ,tanh")
    running.execute(out, plan, console)
    said, page = console.export_text(), (out / "report.html").read_text()
    names = ["ReLU", "PLU", "tanh", "mean"]  # the mean is the baseline
    assert re.search(r"loss of row / column +" + " +".join(names), said)
    assert all(re.search(rf"^{name} .*\d", said, re.MULTILINE) for name in names)
    assert "different test losses" not in said
    title, finding = "height of waves.csv, learned from 3 columns", "Median test losses over 7 splits and starts"
    assert [text in page for text in ("Bonferroni", title, finding, "plunit compare")] == [True] * 4
    assert [text in page for text in ("bootstrap", "The paper says")] == [False] * 2
    for noun in ("test loss", "training loss"):
        assert f"median {noun}" in said
        assert f"<th>{noun.capitalize()}</th>" in page
    pairs = (out / "pairs.csv").read_text()
    assert len(pairs.splitlines()) == 1 + 4 * 3
    table.unlink()
    running.publish(out, console)  # stored results do not need the table
    assert (out / "pairs.csv").read_text() == pairs


def test_the_baseline_wins_where_there_is_nothing_to_learn(tmp_path, console):
    path, out = tmp_path / "noise.csv", tmp_path / "out"
    rows = np.random.default_rng(0).normal(size=(80, 4))
    path.write_text("a,b,c,height\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist()))
    long = {"assignments": ["widths=16", "steps=400", "lr=0.02"], "activations": "relu,plu,tanh"}
    running.execute(out, wanted(out, path, seeds=24, **long), console)
    found = [row.split(",") for row in (out / "pairs.csv").read_text().splitlines()[1:]]
    assert {row[1]: row[-1] for row in found if row[2] == "mean"} == dict.fromkeys(("relu", "plu", "tanh"), "higher")


GAPS = "size,colour,a,height\n" + "".join(
    f"{'' if k % 7 == 3 else k % 5},{'' if k % 11 == 5 else ('red', 'green', 'blue', 'rare')[3 if k == 17 else k % 3]},"
    f"{k},{k % 3 + k % 5}\n"
    for k in range(40)
)


@pytest.fixture
def gaps(tmp_path):
    """A column of numbers with gaps, one of text with gaps and a value that occurs once, and one of numbers."""
    path = tmp_path / "gaps.csv"
    path.write_text(GAPS)
    return path


def test_text_and_gaps_are_encoded_by_the_training_rows_of_each_split(gaps):
    table = rows_of(gaps)
    raw = [line.split(",") for line in GAPS.splitlines()[1:]]
    for seed in range(8):
        split = Split(table, 0.3, np.random.default_rng(seed))
        given = [float(raw[k][0]) for k in split.train if raw[k][0]]
        fill, seen = np.median(given), {raw[k][1] for k in split.train}
        gap = any(not raw[k][0] for k in split.train)
        expected = [
            [float(size) if size else fill, float(a), float(not size and gap)]
            + [float(colour == value and value in seen) for value in ("blue", "green", "rare", "red", "")]
            for size, colour, a, _ in raw
        ]
        np.testing.assert_array_equal(table.encode(split.train), expected)
    assert table.inputs == 8


def test_a_table_with_text_and_gaps_is_compared_with_paired_seeds(tmp_path, gaps):
    (_, tanh), (_, relu) = (computed(tmp_path, gaps, activation) for activation in ("tanh", "relu"))
    assert len(tanh["theta"]) == 8 * 4 + 4 + 4 + 1
    np.testing.assert_array_equal(tanh["baseline"], relu["baseline"])
    assert np.isfinite(tanh["test_loss"]).all()


def test_a_table_that_has_changed_is_not_taken_for_the_old_one(tmp_path, table):
    (part,) = wanted(tmp_path, table, seeds=1, activations="plu").values()
    run.load.cache_clear()
    table.write_text(table.read_text() + "1,2,3,4\n")
    with pytest.raises(UserError, match="has changed since the comparison began"):
        part.experiment().compute(part.cells()[0], tmp_path)
    assert wanted(tmp_path, table, seeds=1).keys() != {part.experiment().name}


@pytest.mark.parametrize("common", [0.1, 0.125])
def test_a_column_that_is_constant_in_the_training_rows_is_not_divided_by_rounding(common):
    x = np.full((400, 2), common)
    x[:, 1] = np.random.default_rng(0).normal(size=400)
    table = Table(x, x[:, 1] ** 2, ("a", "b"), "y", "")
    first = Split(TableRows(table), 0.2, np.random.default_rng(3)).test[0]
    x[first, 0] = 3
    split = Split(TableRows(table), 0.2, np.random.default_rng(3))
    rows, _ = split.rows(split.test)
    assert rows[0, 0] == np.float32(3 - common)
    np.testing.assert_allclose(rows[1:, 0], 0, atol=1e-15)
    np.testing.assert_array_equal(split.rows(split.train)[0][:, 1].std().round(5), 1)


def test_both_charts_of_losses_have_an_axis_of_their_own():
    arrays = {"history": np.full((200, 3), 1e-3), "test_curve": np.ones((20, 3)), "test_loss": np.ones(3)}
    picture, _ = catalogue()["compare"].figures({"plu": arrays, "relu": arrays})
    left, right = picture.figure.axes
    assert left.get_ylim()[1] < 1 < right.get_ylim()[1]
    assert [axes.get_ylabel() for axes in (left, right)] == ["mean square error"] * 2


def test_the_name_of_a_comparison_is_a_file_name_and_its_title_counts_the_inputs():
    def varied(**changes):
        return catalogue()["compare"].vary({"path": "x.csv", "target": "y", **changes})

    odd = varied(path="/a/b c/../x:*?.csv", target="a/b", sha256="0123456789", widths=(3, 4), test=0.2)
    assert re.fullmatch(r"compare\+x___\+a_b\+widths=3x4\+[0-9a-f]{6}", odd.name)
    assert varied(inputs=("a",)).name != varied().name
    assert odd.title.endswith(", widths = 3x4")
    assert varied(inputs=("a",)).title == "y of x.csv, learned from one column"
    assert varied(inputs=("a", "b"), target="3").title == "column 3 of x.csv, learned from 2 columns"


@pytest.mark.parametrize("name", ["損失" * 20 + " $\\frac$.csv ", "a" * 200 + ".csv"])
def test_odd_file_names_and_columns_do_not_block_the_folder(tmp_path, table, name, console):
    odd, out = tmp_path / name, tmp_path / "out"
    odd.write_text(table.read_text().replace("height", "y$\\frac$" + "損" * 60))
    named = plan.for_table(odd, "-1", "", pytest.fail)
    few = {"seeds": 5, "activations": "relu,plu", "assignments": ["widths=4", "steps=9"]}
    found = plan.for_run(out, "compare", table=named, **few)
    running.execute(out, found, console)
    assert "\\frac" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"assignments": ["widths=0"]}, "widths must be a list of whole numbers (1 to 256), got 0"),
        ({"assignments": ["test=1"]}, "test must be a number (0.01 to 0.9), got 1.0"),
        *(({"assignments": [f"{name}=a"]}, f"{name} cannot be set") for name in ("inputs", "target", "path", "sha256")),
        ({"inputs": ","}, "',' names no input"),
        ({"name": "new\nline.csv"}, "rename the file"),
        ({"name": "\udcff.csv"}, "rename the file"),
        ({"factor": "e300"}, "scale its column"),
    ],
    ids=str,
)
def test_messages(tmp_path, table, change, said):
    change = dict(change)
    table.write_text(table.read_text().replace("\n", f"{change.pop('factor', '')}\n").replace("heighte300", "height"))
    path = tmp_path / change.pop("name", table.name)
    with pytest.raises(UserError, match=r"^[^\n]*$") as error:
        wanted(tmp_path, path, **change)
    assert said in str(error.value)
