"""Networks as .nnet files, against an evaluation of the text by the rules of the format."""

import re

import numpy as np
import pytest
from model_files import POINTS, nnet_values
from random_networks import random_network

from plunit.pieces import activation, load, network, save_nnet, to_relu

BOX = [(-20, 20), (-30, 20), (-20, 20)]


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_text_is_the_network(seed, outputs, tmp_path):
    net = random_network(seed, 3, 5, 3, outputs)
    save_nnet(net, tmp_path / "net.nnet", BOX)
    np.testing.assert_allclose(nnet_values(tmp_path / "net.nnet"), net(POINTS), rtol=1e-11, atol=1e-11)
    back, plain = load(tmp_path / "net.nnet"), to_relu(net, only_relu=True)
    assert all(np.array_equal(a.weight, b.weight) for a, b in zip(back.layers, plain.layers, strict=True))


def test_the_lines_are_those_of_the_format(tmp_path):
    save_nnet(network([([[1.0, 2.0]], [0.5]), activation.relu(), ([[3.0]], [0.25])]), tmp_path / "n", [(-1, 1), (0, 2)])
    comment, *lines = (tmp_path / "n").read_text().splitlines()
    assert comment.startswith("// ")
    assert lines == [
        "2,2,1,2,",
        "2,1,1,",
        "0,",
        "-1.0,0.0,",
        "1.0,2.0,",
        "0.0,0.0,0.0,",
        "1.0,1.0,1.0,",
        "1.0,2.0,",
        "0.5,",
        "3.0,",
        "0.25,",
    ]


@pytest.mark.parametrize(
    ("box", "text"),
    [
        ([(-1, 1)], "a box of 3 input(s) is 3 pair(s) (low, high), got 1"),
        (None, "a box of 3 input(s) is 3 pair(s) (low, high), got None"),
        ([(-1, 1), (2, 0), (0, 1)], "a box needs finite low < high, got [2.0, 0.0] for input 1"),
        ([(-1, 1), (0, np.inf), (0, 1)], "a box needs finite low < high"),
        ([(-1, 1), ("a", "b"), (0, 1)], "a box needs two numbers, low and high"),
    ],
)
def test_the_box_must_fit(box, text, tmp_path):
    with pytest.raises(ValueError, match=re.escape(text)):
        save_nnet(random_network(0, 3, 2, 1), tmp_path / "net", box)
    assert not (tmp_path / "net").exists()


GOOD = ["1,2,1,2,", "2,1,", "0,", "-1,-1,", "1,1,", "0,0,0,", "1,1,1,", "3,4,", "5,"]
CHANGES = {
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


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_with_a_fault_is_one_line(name, tmp_path):
    changes, reason = CHANGES[name]
    (tmp_path / "net").write_text("\n".join(changes.get(i, line) for i, line in enumerate(GOOD)))
    with pytest.raises(ValueError, match=r"is a \.nnet file: ") as error:
        load(tmp_path / "net")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
