import colorsys

import numpy as np
import pytest

from plunit.pieces.drawing import gradient_colors


def test_colours_tell_directions_apart():
    colors = gradient_colors(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]]), 1.0)
    assert len(np.unique(colors.round(3), axis=0)) == 4
    np.testing.assert_allclose(colors[3], 1.0)


@pytest.mark.parametrize("angle", np.linspace(0, 2 * np.pi, 13))
@pytest.mark.parametrize("size", [0.0, 0.25, 1.0, 4.0])
def test_hue_is_the_direction_and_depth_the_size(angle, size):
    depth = min(size, 1.0) ** 0.5
    expected = colorsys.hsv_to_rgb(angle / (2 * np.pi) % 1.0, 0.75 * depth, 1 - 0.15 * depth)
    found = gradient_colors(size * np.array([[np.cos(angle), np.sin(angle)]]), 1.0)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-12)
