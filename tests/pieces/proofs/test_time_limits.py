"""Time limits and Ctrl-C reach every linear program. The margins are wide, because machines are busy."""

import subprocess
import sys
import time

import numpy as np
import pytest
from plunit.pieces.proofs.highs import Solver
from random_networks import dense_network

from plunit.pieces import lipschitz, maximum

pytest.importorskip("highspy")


@pytest.mark.parametrize("question", [maximum, lipschitz])
def test_the_time_limit_holds_for_deep_networks(question):
    """Their linear programs alone take longer."""
    start = time.monotonic()
    found = question(dense_network(0, 3, *[96] * 6, 1, weight=1.5, bias=0.5), [(-1, 1)] * 3, time_limit=2.0)
    assert time.monotonic() - start < 30
    assert found.bound > found.value
    assert not found.proved


def hard_program(size):
    """A dense linear program."""
    rng = np.random.default_rng(0)
    return Solver(rng.uniform(-1, 1, (size, size)), np.full(size, -np.inf), np.full(size, 1.0)), rng.uniform(0, 1, size)


def test_a_linear_program_ends_when_time_is_over():
    solver, costs = hard_program(900)
    start = time.monotonic()
    found = solver.maximise(costs, 0.3)
    assert time.monotonic() - start < 20
    assert (found.status, found.bound) == ("limit", np.inf)
    assert solver.maximise(costs, 0.0).status == "limit"
    small, costs = hard_program(50)
    assert small.maximise(costs, 100.0).bound == small.maximise(costs).bound < np.inf


def test_a_linear_program_that_takes_long_goes_on_to_its_end():
    """The first part of a second is spent without a thread; what follows begins where it ended."""
    solver, costs = hard_program(400)
    right = pytest.importorskip("scipy.optimize").linprog
    rng = np.random.default_rng(0)
    matrix = rng.uniform(-1, 1, (400, 400))
    assert solver.maximise(costs).bound == pytest.approx(-right(-costs, matrix, np.ones(400), bounds=(0, 1)).fun)


def test_ctrl_c_stops_a_linear_program():
    code = (
        "import os, signal, threading, time\n"
        "import numpy as np\n"
        "from plunit.pieces.proofs.highs import Solver\n"
        "rng, n = np.random.default_rng(0), 1500\n"
        "solver = Solver(rng.uniform(-1, 1, (n, n)), np.full(n, -np.inf), np.ones(n))\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "start = time.monotonic()\n"
        "try: solver.maximise(rng.uniform(0, 1, n))\n"
        "except KeyboardInterrupt: print('stopped', time.monotonic() - start < 15)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout == "stopped True\n"


def test_ctrl_c_stops_a_long_search_however_often_it_comes():
    code = (
        "import os, signal\n"
        "import numpy as np\n"
        "from plunit.pieces import activation, maximum, network\n"
        "rng = np.random.default_rng(0)\n"
        "layers = [(rng.normal(size=(40, n)) / n**0.5 * 2, rng.normal(size=40)) for n in (8, 40)]\n"
        "last = rng.normal(size=(1, 40)), [0.0]\n"
        "net = network([layers[0], activation.plu(), layers[1], activation.plu(), last])\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "press = lambda part, text: [os.kill(os.getpid(), signal.SIGINT) for _ in range(9)]\n"
        "try: maximum(net, [(-2, 2)] * 8, time_limit=300, progress=press)\n"
        "except KeyboardInterrupt: print('stopped')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout == "stopped\n"


def test_the_time_limit_holds_for_cells_as_well():
    net = dense_network(0, 2, 150, 150, 1, weight=1.5, bias=0.5)
    start = time.monotonic()
    found = maximum(net, [(-3, 3)] * 2, time_limit=0.3)
    assert time.monotonic() - start < 20
    assert found.bound >= found.value


def test_two_inputs_whose_time_is_over_need_no_solver(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    net = dense_network(0, 2, 150, 150, 1, weight=1.5, bias=0.5)
    found = maximum(net, [(-3, 3)] * 2, time_limit=0.05)
    assert found.value <= found.bound < np.inf
    assert not found.proved
