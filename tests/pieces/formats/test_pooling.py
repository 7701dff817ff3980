"""Windows that slide, and their maxima as rounds of pairs, against plain loops."""

from itertools import product

import numpy as np
import pytest

from plunit.pieces.formats.pooling import Slide, find_windows, pair_maxima


def looked_up(shape, slides):
    """Return the indices in each window, one by one; -1 for padding."""
    found = []
    channels = shape[: len(shape) - len(slides)]
    for place in product(*map(range, channels), *(range(slide.count) for slide in slides)):
        taps = []
        for tap in product(*(range(slide.kernel) for slide in slides)):
            axes = [
                i * slide.stride - slide.padding + j * slide.dilation
                for i, j, slide in zip(place[len(channels) :], tap, slides, strict=True)
            ]
            inside = all(0 <= i < size for i, size in zip(axes, shape[len(channels) :], strict=True))
            taps.append(int(np.ravel_multi_index((*place[: len(channels)], *axes), shape)) if inside else -1)
        found.append(taps)
    return found


SLIDES = {
    "one axis": ((2, 5), [Slide(3, 2, 2, 1)]),
    "beyond the end": ((1, 1, 4), [Slide(3, 3, 2, 1, 2)]),
    "two axes": ((1, 2, 4, 3), [Slide(2, 3, 2, 1), Slide(3, 2, 1, 1, 2)]),
    "the whole": ((2, 3, 2), [Slide(1, 3), Slide(1, 2)]),
}


@pytest.mark.parametrize("name", SLIDES)
def test_windows_are_those_of_a_loop(name):
    assert find_windows(*SLIDES[name]).tolist() == looked_up(*SLIDES[name])


@pytest.mark.parametrize("seed", range(20))
def test_rounds_of_pairs_leave_the_maximum(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=9)
    windows = rng.integers(-1, 9, size=(6, int(rng.integers(1, 8))))
    windows[:, 0] = rng.integers(9, size=6)
    rounds, last = pair_maxima(rng.permuted(windows, axis=1))
    values = x
    for pairs in rounds:
        values = np.where(pairs[:, 1] < 0, values[pairs[:, 0]], np.maximum(values[pairs[:, 0]], values[pairs[:, 1]]))
    wanted = [max(x[i] for i in window if i >= 0) for window in windows]
    assert values[last].tolist() == wanted
    assert len(rounds) <= int(np.ceil(np.log2(windows.shape[1])))


def test_a_tap_that_no_window_has_takes_no_round():
    rounds, last = pair_maxima(np.array([[-1, 3, -1, -1, -1, -1], [2, -1, -1, 0, -1, -1]]))
    assert [len(pairs) for pairs in rounds] == [2]
    assert len(last) == 2


def test_a_number_is_not_compared_with_itself():
    rounds, last = pair_maxima(np.array([[3, 3], [3, 1]]))
    assert [pairs.tolist() for pairs in rounds] == [[[3, -1], [3, 1]]]
    assert last.tolist() == [0, 1]
