"""Keras takes TensorFlow unless told otherwise; the tests run it on PyTorch, and `make tensorflow` on TensorFlow.

Modules whose optional package is not installed are left out, with their tests.
"""

import os
import signal
from importlib import metadata
from importlib.util import find_spec

import pytest

# a shell's background jobs ignore Ctrl-C, and so would the tests that press it, and their processes
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("KERAS_BACKEND", "torch")

GROUP = "plunit.experiments"
ENTRY_POINTS = metadata.entry_points
INSTALLED = list(ENTRY_POINTS(group=GROUP))


def pytest_configure():
    """Hide the experiments that were installed before the tests, which may install some of their own."""

    def entry_points(**chosen):
        found = ENTRY_POINTS(**chosen)
        return [point for point in found if point not in INSTALLED] if chosen.get("group") == GROUP else found

    metadata.entry_points = entry_points


@pytest.fixture(autouse=True)
def ctrl_c():
    """A command that Ctrl-C has ended leaves the next Ctrl-C to the system; for the next test it is Python's again."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def compiler():
    """Compiled programs can be had here."""
    from plunit.ensemble import why_not_native

    if reason := why_not_native():
        pytest.skip(reason)


@pytest.fixture(params=["native", "numpy"])
def engine(request):
    """The name of each engine of training that works here."""
    if request.param == "native":
        request.getfixturevalue("compiler")
    return request.param


ABSENT = [name for name in ("jax", "equinox", "flax") if find_spec(name) is None]
collect_ignore = [path for name in ABSENT for path in (f"src/plunit/{name}.py", f"tests/test_{name}.py")]
if find_spec("anywidget") is None:
    collect_ignore.append("src/plunit/play/widget.py")
if find_spec("sklearn") is None:
    collect_ignore += ["src/plunit/sklearn", "tests/estimators"]
if "jax" in ABSENT:
    collect_ignore.append("tests/test_jax_layers.py")
