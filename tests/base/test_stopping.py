"""Ctrl-C: noted once, raised the second time, and left alone where it is not for this work."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from plunit.base.stopping import CtrlC, listening

pytestmark = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is not signal.default_int_handler, reason="Ctrl-C is not Python's here"
)


def press():
    signal.raise_signal(signal.SIGINT)


def test_the_first_is_noted_and_the_second_raises():
    said = []
    with listening(lambda: said.append(1)) as ctrl_c:
        assert not ctrl_c.pressed
        press()
        assert ctrl_c.pressed
        with pytest.raises(KeyboardInterrupt):
            press()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # one more would raise before the end
    assert said == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_after_the_work_ctrl_c_raises_again():
    with listening():
        press()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_the_outer_work_hears_it():
    with listening() as outer, listening() as inner:
        press()
    assert (outer.pressed, inner.pressed) == (True, False)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL, lambda *_: None])
def test_a_handler_of_the_caller_stays(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with listening():
            assert signal.getsignal(signal.SIGINT) == handler
        assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_change_nothing():
    seen = []

    def work():
        with listening():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


PARALLEL = {
    "one job": "Parallel(n_jobs=1)(delayed(unchanged)() for _ in range(2))",
    "threads": "Parallel(n_jobs=2, backend='threading')(delayed(unchanged)() for _ in range(2))",
    "processes of joblib": "Parallel(n_jobs=2)(delayed(unchanged)() for _ in range(2))",
    "processes": "multiprocessing.get_context('fork').Pool(1).map(unchanged, [()])",
}


@pytest.mark.skipif(os.name != "posix", reason="forks")
@pytest.mark.parametrize("loop", PARALLEL.values(), ids=PARALLEL.keys())
def test_loops_over_several_fits_change_nothing(loop):
    program = f"""
import multiprocessing, signal
from joblib import Parallel, delayed
from plunit.base.stopping import listening
def unchanged(_=None):
    with listening():
        return signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert not unchanged()
assert all({loop})
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("pressed", "best"), [(False, 1.0), (True, 1.0), (False, float("inf"))])
def test_progress_ends_the_work(pressed, best):
    assert CtrlC(pressed).ending(lambda done, best: None)(0.5, best) is pressed
    assert CtrlC(pressed).ending(lambda done, best: True)(0.5, best) is True


@pytest.mark.parametrize("best", [float("inf"), float("nan")])
def test_before_a_loss_is_known_it_raises(best):
    with pytest.raises(KeyboardInterrupt):
        CtrlC(True).ending(lambda done, best: None)(0.5, best)
