"""The search: time limits, progress, Ctrl-C, the same answer for any number of threads and little memory."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from random_networks import dense_network

from plunit.pieces import (
    Layer,
    Network,
    Property,
    Undecided,
    activation,
    bounds,
    distance,
    holds,
    is_monotone,
    lipschitz,
    maximum,
)
from plunit.pieces.proofs import bounding, branching

BOX = [(-2, 2)] * 8


@pytest.fixture(scope="module")
def hard():
    return dense_network(0, 8, 48, 48, 1, weight=2.0, bias=0.5)


@pytest.fixture(scope="module")
def easy():
    return dense_network(3, 4, 8, 8, 1, weight=1.5, bias=0.5)


@pytest.mark.parametrize("question", [maximum, lipschitz])
def test_a_time_limit_gives_a_point_and_a_bound(question, hard):
    start = time.monotonic()
    found = question(hard, BOX, time_limit=0.5)
    assert time.monotonic() - start < 15
    assert not found.proved
    assert found.value < found.bound < np.inf
    if question is maximum:
        assert found.value == pytest.approx(hard(found.x)[0], rel=1e-12)
        assert hard(np.random.default_rng(1).uniform(-2, 2, (50_000, 8))).max() <= found.bound


def test_more_time_never_widens_the_gap(hard):
    short, long = (maximum(hard, BOX, time_limit=limit) for limit in (0.2, 1.5))
    assert long.bound <= short.bound
    assert long.value >= short.value


LARGE = [(-0.1, 0.1)] * 784
CUTS = np.random.default_rng(2).normal(size=(50, 784)), np.zeros(50)
QUESTIONS = {
    "holds": lambda net, limit: holds(net, Property.always(LARGE, np.eye(10)[:1], [0.0]), time_limit=limit),
    "distance": lambda net, limit: distance(net, halved(net), LARGE, time_limit=limit),
    "bounds": lambda net, limit: bounds(net, LARGE, time_limit=limit),
    "maximum": lambda net, limit: maximum(net, LARGE, constraints=CUTS, time_limit=limit),
    "lipschitz": lambda net, limit: lipschitz(net, LARGE, time_limit=limit),
    "is_monotone": lambda net, limit: is_monotone(net, 0, LARGE, time_limit=limit),
}


def halved(net):
    return Network((*net.layers[:-1], Layer(net.layers[-1].weight / 2, net.layers[-1].bias)))


@pytest.fixture(scope="module")
def large():
    return dense_network(0, 784, 1024, 1024, 10, f=activation.relu(), weight=1.5, bias=0.1)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_about_a_large_network_keeps_to_its_time(name, large):
    """The time of the processor, which other programs do not lengthen; two threads may use it."""
    start = time.process_time()
    with contextlib.suppress(Undecided):
        QUESTIONS[name](large, 0.5)
    assert time.process_time() - start < 2 * (2 * 0.5 + 1)


class Enough(Exception):
    """The search need not go on."""


def test_progress_shows_both_ends_and_the_time(hard):
    said = []

    def tell(part, text):
        said.append((part, text))
        if len(said) == 4:
            raise Enough

    before = threading.active_count()
    with pytest.raises(Enough):
        maximum(hard, BOX, time_limit=300.0, progress=tell)
    assert threading.active_count() == before
    assert all(0 <= part <= 1 for part, _ in said)
    assert all(text.startswith("between ") and " parts left after " in text for _, text in said)
    ends = [tuple(map(float, text.removeprefix("between ").split(",")[0].split(" and "))) for _, text in said]
    assert all(low <= high for low, high in ends)


def test_progress_without_a_limit_stays_at_the_start(easy):
    parts = []
    maximum(easy, [(-1, 1)] * 4, time_limit=None, progress=lambda part, text: parts.append(part))
    assert set(parts) == {0.0}


def test_the_answer_is_the_same_for_any_number_of_threads_and_twice(easy, monkeypatch):
    answers = []
    for threads in (1, 2, 2):
        monkeypatch.setattr(bounding, "processors", lambda threads=threads: threads)
        found = maximum(easy, [(-2, 2)] * 4)
        answers.append((found.x.tolist(), found.value, found.bound, found.proved))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][-1]


def test_a_pool_beyond_its_memory_goes_deep_first(easy, monkeypatch):
    right = maximum(easy, [(-2, 2)] * 4)
    taken, take = [], branching._Pool.take

    def watched(self, count, *, by_value):
        places = np.flatnonzero(self._used)
        found = take(self, count, by_value=by_value)
        taken.append(set(places) - set(np.flatnonzero(self._used)) == set(places[-count:]))
        return found

    monkeypatch.setattr(branching._Pool, "take", watched)
    monkeypatch.setattr(branching, "MEMORY", 1)
    found = maximum(easy, [(-2, 2)] * 4)
    assert all(taken)
    assert found.value == pytest.approx(right.value, rel=1e-9)
    assert found.bound == pytest.approx(right.bound, rel=1e-8)


def test_without_a_compiler_the_answer_is_the_same(easy, monkeypatch):
    right = maximum(easy, [(-1, 1)] * 4)
    monkeypatch.setattr(branching, "prover", lambda: "numpy")
    found = maximum(easy, [(-1, 1)] * 4)
    assert found.proved
    assert found.value == pytest.approx(right.value, rel=1e-9)
    assert found.bound == pytest.approx(right.bound, rel=1e-9)


def test_a_search_outside_the_main_thread(easy):
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(maximum, easy, [(-1, 1)] * 4) for _ in range(2)]
    assert tasks[0].result().value == tasks[1].result().value


def test_a_search_ends_where_numbers_do():
    """The box has three numbers, and the values are those of rounding."""
    net = dense_network(1, 1, 6, 6, 1, weight=3.0)
    at = 0.3
    assert maximum(net, [(np.nextafter(at, 0), np.nextafter(at, 1))], time_limit=None).seconds < 30


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("presses", [1, 9])
def test_ctrl_c_stops_a_long_search(presses):
    code = (
        "import os, signal, sys, threading, time\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from random_networks import dense_network\n"
        "from plunit.pieces import maximum\n"
        "net = dense_network(0, 8, 48, 48, 1, weight=2.0, bias=0.5)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "told = []\n"
        "def press(part, text):\n"
        "    told.append(text)\n"
        f"    if len(told) == 2: [os.kill(os.getpid(), signal.SIGINT) for _ in range({presses})]\n"
        "try: maximum(net, [(-2, 2)] * 8, time_limit=300, progress=press)\n"
        "except KeyboardInterrupt: print('stopped', len(told) < 50)"
    )
    folder = os.path.dirname(sys.modules["random_networks"].__file__)
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout == "stopped True\n"
