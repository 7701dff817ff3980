"""Networks from .nnet files: what a fault in the text is answered with; tests of all importers have its values."""

import numpy as np
import pytest

from plunit.pieces import load, load_nnet, network, save_json

GOOD = ["1,2,1,2,", "2,1,", "0,", "-1,-1,", "1,1,", "0,0,0,", "1,1,1,", "3,4,", "5,"]
CHANGES = {
    "too many sizes": ({1: "2,1,1,1,"}, "but the sizes [2, 1, 1, 1]"),
    "sizes": ({1: "2,3,"}, "it has 1 layers from 2 inputs to 1 outputs, but the sizes [2, 3]"),
    "too few ends": ({3: "-1,"}, "the least values must have 2 numbers, got 1"),
    "too few means": ({5: "0,0,"}, "the means must have 3 numbers, got 2"),
    "a range of 0": ({6: "1,0,1,"}, "a range must not be 0"),
    "a short row": ({7: "3,"}, "row 0 of layer 0 must have 2 numbers, got 1"),
    "a lost bias": ({8: ""}, "bias 0 of layer 0 must have 1 numbers, got 0"),
    "more rows": ({8: "5,\n6,"}, "it continues after the biases of its last layer"),
    "texts": ({7: "3,four,"}, "could not convert string to float: 'four'"),
    "not a number": ({7: "3,nan,"}, "must be finite"),
    "an infinite range": ({6: "inf,1,1,"}, "the ranges must be finite, got inf"),
    "a number with underscores": ({7: "3,1_0,"}, "row 0 of layer 0 must be numbers, got '1_0'"),
    "ends that are swapped": ({3: "2,-1,"}, "the least values [2.0, -1.0] must not be above the largest, [1.0, 1.0]"),
    "a last number that is cut": ({8: "5"}, "it ends within a line"),
}


def test_the_unchanged_file_is_read(tmp_path):
    (tmp_path / "net").write_text("\n".join(GOOD))
    assert load(tmp_path / "net")([[1.0, 2.0]]).tolist() == [[16.0]]


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
    assert net([[1.0, 2.0]]).tolist() == [[16.0]]
    if name == "a single 0 in place of the box":
        assert box is None
    else:
        assert np.array_equal(box, [[-1.0, 1.0], [-1.0, 1.0]])


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
