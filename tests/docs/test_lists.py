"""Lists for users name everything that is in the tables of the code."""

import re
from pathlib import Path

import pytest

from plunit.ensemble import ACTIVATIONS
from plunit.lab.pictures import COLOURS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_has_a_light_and_a_dark_colour_on_the_page_or_none(name):
    style = (ROOT / "src/plunit/play/page/style.css").read_text()
    assert len(re.findall(rf"--{name}: #[0-9a-f]{{6}};", style)) == 2 * (name in COLOURS)


def test_the_map_of_the_tree_has_every_folder():
    page = (ROOT / "docs/contribute.md").read_text()
    package = ROOT / "src/plunit"
    folders = {path.parent for kind in ("*.py", "*.h") for path in package.rglob(kind)} - {package}
    named = {f"| `{path.relative_to(package)}` |" for path in folders if package / "lab" not in path.parents}
    modules = {path.name for path in package.glob("*.py") if path.stem != "__init__"}
    assert {name for name in named if name not in page} == set()
    assert {name for name in modules if f"`{name}`" not in page} == set()
