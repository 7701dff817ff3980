"""The pictures of the page in the docs, taken again."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from plunit.play import session, workshop

DOCS = Path(__file__).parents[2] / "docs"


def coarse(picture):
    """Return the mean grey levels of 24 x 24 parts of a picture."""
    return np.asarray(picture.convert("L").resize((24, 24), Image.Resampling.BOX), float)


@pytest.mark.parametrize("name", ["playground", "playground_phone"])
def test_the_picture_in_the_docs_is_what_the_page_shows(browser, served, monkeypatch, name):
    monkeypatch.setattr(session, "WATCHED", workshop.WATCHED)  # the picture is that of the pause
    ours = runpy.run_path(str(DOCS / "playground.py"))["take_picture"](browser, served.address, name)
    stored = Image.open(DOCS / f"{name}.png")
    assert ours.width == stored.width
    assert abs(ours.height - stored.height) < 0.03 * stored.height  # other fonts
    different = np.abs(coarse(ours) - coarse(stored))
    assert different.mean() < 1  # of 255
    assert (different > 16).mean() < 0.01  # fonts differ
