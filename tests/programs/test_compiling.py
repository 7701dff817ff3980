"""The compiler runs in a group of processes of its own, which ends as a whole."""

import os
import subprocess
import sys
import time

import pytest

from plunit.programs.compiling import run_group

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_what_a_command_prints_is_kept():
    program = "import os, sys; print(os.environ['WORD']); sys.stderr.write('no'); sys.exit(3)"
    done = run_group([sys.executable, "-c", program], timeout=60, env={**os.environ, "WORD": "yes"})
    assert (done.stdout.split(), done.stderr, done.returncode) == ([b"yes"], b"no", 3)


@pytest.mark.parametrize("has_groups", [True, False])
def test_the_process_is_ended_also_on_a_system_without_groups(has_groups, monkeypatch):
    if not has_groups:
        monkeypatch.delattr(os, "killpg", raising=False)
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_group(SLEEP, timeout=0.1, env=os.environ)
    assert time.monotonic() - start < 30
