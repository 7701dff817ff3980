"""A real browser, for pages of the playground and reports of the lab."""

import contextlib
import os
import shutil
import tempfile

import pytest

FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


def lacking(what):
    """Skip, or fail where a browser is required."""
    if os.environ.get("PLUNIT_BROWSER") == "required":
        pytest.fail(f"{what}, and PLUNIT_BROWSER=required")
    pytest.skip(f"{what}: the tests in a browser were skipped")


@contextlib.contextmanager
def open_browser():
    """Chromium with a fresh profile, for one module: Playwright keeps an event loop running in this thread."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        lacking("no chromium found")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        lacking("playwright is not installed")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=FLAGS, env={**os.environ, "HOME": home})
        yield launched
        launched.close()
