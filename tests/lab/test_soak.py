"""Kills at random moments, over all experiments: `make soak`. The tables are those of an undisturbed run."""

import math
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest
from commands import PROGRAM

from plunit.lab import cifar10_data as cifar10
from plunit.lab import plan, store

KILLS = int(os.environ.get("PLUNIT_KILLS", "100"))
WORK = {  # arguments: the share of all kills, and the longest time before one in seconds
    "reproduce --seeds 24 --only sine,parametric,surface,reach,depth,inverse": (0.45, 9),
    "run capacity --seeds 24": (0.25, 9),
    "run inverse --set points=64 --seeds 6": (0.2, 12),
    "run cifar10 --set steps=1600 --activations plu,relu": (0.1, 20),  # checkpoints after 500, 1,000 and 1,500
}


def finish(folder):
    for arguments in WORK:
        subprocess.run([*PROGRAM, *arguments.split(), "--out", str(folder)], check=True, capture_output=True)


def wait_for_a_checkpoint(process, folder):
    """Wait until there is one, on a slow machine too, or the process has ended."""
    while process.poll() is None and not list(folder.glob("unfinished/*.checkpoint")):
        time.sleep(0.5)


def kill_now_and_then(arguments, folder, kills, longest, chance):
    """Run a command until it ends by itself and kill it at random moments before; return kills and resumptions."""
    done = resumed = 0
    while True:
        resumed += bool(list(folder.glob("unfinished/*.checkpoint")))
        command = [*PROGRAM, *arguments.split(), "--out", str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        if "cifar10" in arguments and done < kills and done % 2 == 0:
            wait_for_a_checkpoint(process, folder)
        try:
            _, said = process.communicate(timeout=chance.uniform(0.5, longest) if done < kills else None)
        except subprocess.TimeoutExpired:
            # the process alone, or all of its session at once, as when the machine goes down
            (os.kill if chance.random() < 0.5 else os.killpg)(process.pid, signal.SIGKILL)
            process.communicate()
            done += 1
        else:
            assert process.returncode == 0, said
            return done, resumed


@pytest.mark.soak
@pytest.mark.skipif(not (cifar10.folder() / cifar10.TEST).exists(), reason="needs CIFAR-10: plunit data cifar10")
def test_runs_killed_at_random_moments_end_with_the_same_tables(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    start = time.monotonic()
    finish(whole)
    chance, kills, resumed = random.Random(0), 0, 0
    for arguments, (share, longest) in WORK.items():
        some, again = kill_now_and_then(arguments, killed, math.ceil(share * KILLS), longest, chance)
        kills, resumed = kills + some, resumed + again
    print(f"{kills} kills, CIFAR-10 resumed from a checkpoint {resumed} times, {time.monotonic() - start:.0f} s")
    assert resumed >= 2
    names = ("summary.csv", "claims.csv", "histories.npz")
    assert [name for name in names if (whole / name).read_bytes() != (killed / name).read_bytes()] == []
    cells = [cell for part in plan.load(whole).values() for cell in part.cells()]
    ours, theirs = (store.read_all(folder, cells, pytest.fail) for folder in (whole, killed))
    different = [
        (cell.experiment, name)
        for cell in cells
        for name in ours[cell]
        if name != "seconds" and not np.array_equal(ours[cell][name], theirs[cell][name], equal_nan=True)
    ]
    assert different == []
    assert list((killed / "unfinished").iterdir()) == []
