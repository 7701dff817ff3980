"""The documentation site: `make docs` builds it, offline, with every warning an error.

The pages of the reference are written from the modules that have an `__all__`. The build fails if one of its names is
missing in the end. The gallery runs the scripts of examples/, and the build fails if one of them does. Pages link to
the scripts, so that the links work in a clone; on the site they lead to the pages of the gallery.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "src")]

import reference_pages  # noqa: E402

import plunit  # noqa: E402

project = "plunit"
version = release = plunit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
default_role = "code"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Ints": "Array"}  # of annotations that are text
napoleon_attr_annotations = False  # the signature has the types
highlight_options = {"python": {"stripnl": True}}  # the last line of an example is blank, for doctest

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery.position",
    "reset_modules": ("matplotlib", "gallery.apply_style"),
    "run_stale_examples": True,  # what they import may have changed
    "thumbnail_size": (400, 280),
    "capture_repr": (),
    "min_reported_time": 60,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
pygments_dark_style = "github-dark"  # furo's own underlines modules as if they were links
html_title = f"plunit {release}"
html_static_path = ["_static"]
html_extra_path = ["playground.png", "playground_phone.png"]  # a page chooses one by its width
html_css_files = ["plunit.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#007a5a", "color-brand-content": "#007a5a"},
    "dark_css_variables": {"color-brand-primary": "#4fd1ab", "color-brand-content": "#4fd1ab"},
}


def link_to_gallery(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to examples/ and its scripts into links to the gallery and its pages."""
    text = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](gallery/\1.rst)", source[0])
    source[0] = text.replace("](../examples)", "](gallery/index.rst)")


def setup(app: Sphinx) -> None:
    """Write the reference; rewrite docstrings ahead of napoleon."""
    reference_pages.write_reference()
    app.connect("source-read", link_to_gallery)
    app.connect("autodoc-process-docstring", reference_pages.rewrite, priority=400)
    app.connect("autodoc-process-signature", reference_pages.without_factories)
    app.connect("object-description-transform", reference_pages.name_arrays)
    app.connect("autodoc-skip-member", reference_pages.is_generated)
    app.connect("build-finished", reference_pages.check_reference)
