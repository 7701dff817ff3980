"""The site itself is built, with every warning an error, by `make docs`; here is what the build does not see."""

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
addnodes = pytest.importorskip("sphinx.addnodes")
reference = runpy.run_path(str(DOCS / "reference_pages.py"))
PUBLIC = reference["public_names"]()
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
BASES = ROOT, ROOT / "src/plunit"
FOLDERS = sorted({path.name for base in BASES for path in base.iterdir() if path.is_dir()} - {"build", "runs"})


def is_known(name):
    """Whether a dotted name is a module, or something in one."""
    module, _, rest = name.rpartition(".")
    try:
        parent = importlib.import_module(module)
    except ModuleNotFoundError:  # a class, perhaps
        return is_known(module)
    return hasattr(parent, rest) or (hasattr(parent, "__path__") and importlib.util.find_spec(name) is not None)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_lists_what_a_module_exports_sorted(module):
    names = PUBLIC[module]
    assert names == importlib.import_module(module).__all__
    assert names == sorted(set(names), key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []


def test_every_package_with_exports_has_a_page():
    exporting = {path for path in (ROOT / "src").rglob("*.py") if re.search(r"^__all__ = ", path.read_text(), re.M)}
    assert {reference["module_path"](module) for module in PUBLIC} == exporting


def test_constants_have_the_text_below_them():
    assert reference["constants"]("plunit.invertible")["TOYS"] == "The toy densities by name."
    assert "PLURegressor" not in reference["constants"]("plunit.sklearn")


@pytest.mark.parametrize(
    ("plain", "rst"),
    [
        ("|x| <= c of `raw_c`, see theta_", r"\|x\| <= c of ``raw_c``, see theta\_"),
        ("    coefs_, theta_: weights", "    coefs_, theta_: weights"),
        ("    bijection: F. Its parameters", r"    bijection: F\. Its parameters"),
    ],
)
def test_docstrings_become_restructured_text(plain, rst):
    assert reference["plain_to_rst"](plain) == rst


def test_words_before_a_colon_are_no_type():
    napoleon = pytest.importorskip("sphinx.ext.napoleon")
    lines = ["The outer slope: a number, or the learned values."]
    reference["rewrite"](None, "property", "PLU.alpha", None, None, lines)
    made = napoleon.GoogleDocstring(lines, napoleon.Config(), what="property", name="PLU.alpha").lines()
    assert made == ["..", "", "The outer slope: a number, or the learned values."]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (" → tuple[ndarray[tuple[Any, ...], dtype[float64]] | None, int]", " → tuple[Array | None, int]"),
        ("Callable[[ndarray[Any, Any], Any], ndarray[Any, dtype[int64]]]", "Callable[[Array, Any], Array]"),
        ("tuple[Any, ...] | dtype[float64]", "tuple[Any, ...] | dtype[float64]"),
    ],
)
def test_the_type_of_an_array_is_one_word(before, after):
    nodes = [addnodes.desc_sig_name("", word) for word in re.split(r"(\W)", before)]
    assert "".join(node.astext() for node in reference["with_arrays_named"](nodes)) == after


def test_the_reference_says_what_each_module_is_for():
    assert [module for module in PUBLIC if not reference["summary"](module).endswith(".")] == []
    assert "- [`plunit.numpy`](plunit.numpy.md): PLU on NumPy" in reference["contents"](PUBLIC)


@pytest.mark.parametrize(("name", "left_out"), [("set_fit_request", True), ("set_params", None), ("fit", None)])
def test_what_is_generated_is_left_out(name, left_out):
    assert reference["is_generated"](None, "class", name, object(), False, None) is left_out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_names_in_pages_exist(page):
    code = set(re.findall(r"`([^`\n]+)`", page.read_text()))
    paths = [text for text in code if re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./]*\w", text) and "NAME" not in text]
    names = [found[0] for text in code if (found := re.match(r"plunit(\.[A-Za-z_]\w*)+", text))]
    assert [path for path in paths if not any((base / path).exists() for base in BASES)] == []
    assert [name for name in names if not is_known(name)] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_of_the_front_door_lead_somewhere(page):
    links = re.findall(r"(?:\]\(|src=\")(?!https?:)([^)#\"]+)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
