"""Networks from .nnet files: inputs are clipped, and each fault in the text has its message."""

import numpy as np
import pytest

from plunit.pieces import Property, holds, load, load_nnet, maximum, network, save_json
from plunit.pieces.proofs.bounding import Query
from plunit.pieces.proofs.properties import Domain

GOOD = ["1,2,1,2,", "2,1,", "0,", "-1,-1,", "1,1,", "0,0,0,", "1,1,1,", "3,4,", "5,"]
CHANGES = {
    "too many sizes": ({1: "2,1,1,1,"}, "do not fit the sizes [2, 1, 1, 1]"),
    "sizes": ({1: "2,3,"}, "1 layers from 2 inputs to 1 outputs do not fit the sizes [2, 3]"),
    "too few ends": ({3: "-1,"}, "the smallest values must have 2 numbers, got 1"),
    "too few means": ({5: "0,0,"}, "the means must have 3 numbers, got 2"),
    "a range of 0": ({6: "1,0,1,"}, "a range must not be 0"),
    "a short row": ({7: "3,"}, "row 0 of layer 0 must have 2 numbers, got 1"),
    "a lost bias": ({8: ""}, "bias 0 of layer 0 must have 1 numbers, got 0"),
    "more rows": ({8: "5,\n6,"}, "the file must end after the biases of the last layer"),
    "texts": ({7: "3,four,"}, "could not convert string to float: 'four'"),
    "not a number": ({7: "3,nan,"}, "must be finite"),
    "an infinite range": ({6: "inf,1,1,"}, "the ranges must be finite, got inf"),
    "a number with underscores": ({7: "3,1_0,"}, "row 0 of layer 0 must be numbers, got '1_0'"),
    "ends that are swapped": ({3: "2,-1,"}, "the smallest values [2.0, -1.0] must not exceed the largest, [1.0, 1.0]"),
    "a last number that is cut": ({8: "5"}, "the file ends within a line"),
}


def test_the_unchanged_file_is_read(tmp_path):
    (tmp_path / "net").write_text("\n".join(GOOD))
    assert load(tmp_path / "net")([[1.0, -0.5]]).tolist() == [[6.0]]


def test_means_and_ranges_are_part_of_the_network(tmp_path):
    lines = [*GOOD[:5], "0.5,-0.25,7,", "2,4,8,", *GOOD[7:]]
    (tmp_path / "net").write_text("\n".join(lines))
    x = np.array([[1.0, -0.5], [-0.25, 0.75]])
    wanted = 8 * (3 * (x[:, 0] - 0.5) / 2 + 4 * (x[:, 1] + 0.25) / 4 + 5) + 7
    np.testing.assert_array_equal(load(tmp_path / "net")(x)[:, 0], wanted)


def evaluate(x, least, largest):
    """3 x_0 + 4 x_1 + 5 as the programs of the format compute it, which clip x first."""
    clipped = [min(max(number, low), high) for number, low, high in zip(x, least, largest, strict=True)]
    return 3 * clipped[0] + 4 * clipped[1] + 5


BOXES = {
    "around 0": ([-1.0, -1.0], [1.0, 1.0]),
    "away from 0": ([2.0, -7.0], [3.5, -6.0]),
    "one input is fixed": ([-1.0, 0.25], [1.0, 0.25]),
}


@pytest.mark.parametrize("name", BOXES)
def test_inputs_are_clipped_to_the_values_of_the_file(name, tmp_path):
    least, largest = BOXES[name]
    lines = {3: ",".join(map(str, least)) + ",", 4: ",".join(map(str, largest)) + ","}
    (tmp_path / "net").write_text("\n".join(lines.get(i, line) for i, line in enumerate(GOOD)))
    net = load(tmp_path / "net")
    for x in np.random.default_rng(0).uniform(-9, 9, (50, 2)).tolist():
        assert net(x)[0] == pytest.approx(evaluate(x, least, largest), rel=1e-14, abs=1e-14)
    top = evaluate(largest, least, largest)
    assert maximum(net, [(-9, 9)] * 2).value == pytest.approx(top, rel=1e-12)
    for limit, status in ((top + 0.01, "proved"), (top - 0.01, "refuted")):
        assert holds(net, Property.always([(-9, 9)] * 2, [[1.0]], [limit])).status == status


@pytest.mark.parametrize(("side", "depth"), [((-1.0, 1.0), 1), ((0.5, 0.5), 1), ((-1.0, 1.001), 2), ((1.0, 2.0), 2)])
def test_a_proof_leaves_the_clipping_out_where_it_changes_nothing(side, depth, tmp_path):
    (tmp_path / "net").write_text("\n".join(GOOD))
    net = load(tmp_path / "net")
    query = Query.of(net, Domain.of(net, [(-0.5, 0.5), side]), [np.ones((1, 1))])
    assert len(query.net.layers) == depth
    x = np.random.default_rng(0).uniform([-0.5, side[0]], [0.5, side[1]], (20, 2))
    np.testing.assert_array_equal(query.net(x), net(x))


OLDER = {
    "a comment, and no normalisation": ["// old", *GOOD[:5], *GOOD[7:]],
    "no commas at the end of the header": ["1,2,1,2", "2,1", "0", *GOOD[3:5], *GOOD[7:8], "5"],
    "the last size twice": ["1,2,1,2", "2, 1, 1", "0", *GOOD[3:7], "3, 4 ", "5"],
    "a single 0 in place of the box": [*GOOD[:3], "0,", "0,", *GOOD[5:]],
    "a single 0 in place of normalisation": [*GOOD[:5], "0", "0", *GOOD[7:]],
}


@pytest.mark.parametrize("name", OLDER)
def test_older_headers_and_the_box(name, tmp_path):
    (tmp_path / "net").write_text("\n".join(OLDER[name]))
    net, box = load_nnet(tmp_path / "net")
    assert net([[1.0, -0.5]]).tolist() == [[6.0]]
    if name == "a single 0 in place of the box":
        assert box is None
        assert net([[1.0, 2.0]]).tolist() == [[16.0]]
    else:
        assert np.array_equal(box, [[-1.0, 1.0], [-1.0, 1.0]])


def test_one_input_between_0_and_0_has_no_box(tmp_path):
    """Otherwise the network would be a constant."""
    (tmp_path / "net").write_text("\n".join(["1,1,1,1,", "1,1,", "0,", "0,", "0,", "0,0,", "1,1,", "3,", "5,"]))
    net, box = load_nnet(tmp_path / "net")
    assert box is None
    assert net([[2.0]]).tolist() == [[11.0]]


def test_another_format_has_no_box(tmp_path):
    save_json(network([([[1.0]], [0.0])]), tmp_path / "net")
    with pytest.raises(ValueError, match=r"is not a \.nnet file"):
        load_nnet(tmp_path / "net")


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_with_a_fault_is_one_line(name, tmp_path):
    changes, reason = CHANGES[name]
    (tmp_path / "net").write_text("\n".join(changes.get(i, line) for i, line in enumerate(GOOD)))
    with pytest.raises(ValueError, match=r"is a \.nnet file: ") as error:
        load(tmp_path / "net")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
