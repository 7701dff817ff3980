"""Training: what a step is, what is recorded, and that a killed run goes on to the same bits."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from plunit.lab import scratch
from plunit.lab.cell import Cell
from plunit.lab.train.cifar10 import CHOICES, Cifar10Spec, Training, compute, untrained

SPEC = Cifar10Spec(steps=24, batch=10, early=(1, 5), stride=10)


def cell(activation="plu", seed=0, **changes):
    return Cell("cifar10", dataclasses.replace(SPEC, **changes), activation, seed, seed + 1, "", "")


def test_a_step_is_adam_on_the_mean_cross_entropy_of_the_drawn_images(tiny):
    training = Training(SPEC, "tanh", 7, tiny)
    training.advance()
    training.advance()
    model = untrained(SPEC, "tanh", 7)
    adam = torch.optim.Adam(model.parameters(), lr=0.001)
    images = torch.from_numpy(tiny.train_images).float() / 127.5 - 1
    losses = []
    for step in range(2):
        index = np.random.default_rng((7, step)).integers(120, size=10)
        loss = F.cross_entropy(model(images[index]), torch.from_numpy(tiny.train_labels[index]))
        losses.append(loss.item())
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert training.losses == pytest.approx(losses, rel=1e-5)
    torch.testing.assert_close(
        dict(training.model.named_parameters()), dict(model.named_parameters()), rtol=1e-3, atol=1e-5
    )


def test_inputs_reach_the_network_in_channels_last(tiny):
    x, _ = Training(SPEC, "plu", 0, tiny)._train.take(slice(0, 4))
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert x.min() >= -1
    assert x.max() <= 1


def test_tests_are_recorded_at_their_steps_and_are_right(tiny, tmp_path):
    arrays = compute(cell(), tmp_path / "cell")
    assert arrays["loss"].shape == (24, 1)
    assert arrays["test_step"][:, 0].tolist() == [1, 5, 10, 20, 24]
    found = scratch.read_checkpoint(tmp_path / "cell")
    assert found is not None
    model = untrained(SPEC, "plu", 0)
    model.load_state_dict({name.removeprefix("model."): t for name, t in found[0].items() if name.startswith("model.")})
    with torch.no_grad():
        scores = model(torch.from_numpy(tiny.test_images).float() / 127.5 - 1)
    labels = torch.from_numpy(tiny.test_labels)
    assert arrays["test_loss"][-1, 0] == pytest.approx(F.cross_entropy(scores, labels).item(), rel=1e-5)
    assert arrays["test_accuracy"][-1, 0] == (scores.argmax(1) == labels).double().mean().item()
    assert scratch.done(tmp_path / "cell") > 0


def test_it_learns(tiny, tmp_path):
    loss = compute(cell(steps=60, lr=0.003), tmp_path / "cell")["loss"][:, 0]
    assert loss[-5:].mean() < 0.75 * loss[:5].mean()


def test_activations_see_the_same_batches_and_seeds_others(tiny):
    steps = {key: Training(SPEC, *key, tiny) for key in (("plu", 0), ("identity", 0), ("plu", 1))}
    drawn = {}
    for key, training in steps.items():
        take, drawn[key] = training._train.take, []
        training._train.take = lambda index, take=take, key=key: drawn[key].append(index) or take(index)
        training.advance()
    assert torch.equal(drawn["plu", 0][0], drawn["identity", 0][0])
    assert not torch.equal(drawn["plu", 0][0], drawn["plu", 1][0])


@pytest.mark.parametrize("activation", CHOICES)
def test_a_checkpoint_holds_everything(activation, tiny, tmp_path):
    through = Training(SPEC, activation, 2, tiny)
    for _ in range(8):
        through.advance()
    first = Training(SPEC, activation, 2, tiny)
    for _ in range(3):
        first.advance()
    first.save(tmp_path / "cell")
    second = Training(SPEC, activation, 2, tiny)
    second.restore(tmp_path / "cell")
    assert (second.step, second.losses, second.tests) == (first.step, first.losses, first.tests)
    for _ in range(5):
        second.advance()
    assert second.losses == through.losses
    assert second.tests == through.tests
    torch.testing.assert_close(second.model.state_dict(), through.model.state_dict(), rtol=0, atol=0)


CHILD = """
import sys
from pathlib import Path
from plunit.data import cifar10
from plunit.lab.train import cifar10 as run
sys.path.insert(0, sys.argv[1])
import test_training
run.SAVE_EVERY, run.REPORT_EVERY = 2, 1
cifar10.FILES = {path.name: cifar10.described(path.read_bytes()) for path in sorted(cifar10.folder().iterdir())}
run.compute(test_training.cell(steps=40), Path(sys.argv[2]))
"""


def tensors(path):
    """Return the digest of the tensors, which is the end of their file's name."""
    return json.loads(path.with_name(f"{path.name}.json").read_text())["tensors"].rpartition("-")[2]


def test_a_run_killed_at_random_steps_gives_the_same_bits(tiny, tmp_path):
    command = [sys.executable, "-c", CHILD, os.path.dirname(__file__)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, str(tmp_path / "whole")], check=True, env=environment, timeout=120)
    killed = tmp_path / "killed"
    for part in sorted(random.random() for _ in range(2)):
        process = subprocess.Popen([*command, str(killed)], env=environment)
        limit = time.monotonic() + 120
        while scratch.done(killed) < part and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([*command, str(killed)], check=True, env=environment, timeout=120)
    assert tensors(killed) == tensors(tmp_path / "whole")


def test_a_damaged_checkpoint_does_not_count(tiny, tmp_path):
    training = Training(SPEC, "plu", 0, tiny)
    training.advance()
    training.save(tmp_path / "cell")
    (file,) = tmp_path.glob("cell-*.safetensors")
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    fresh = Training(SPEC, "plu", 0, tiny)
    fresh.restore(tmp_path / "cell")
    assert fresh.step == 0
    (tmp_path / "cell.json").unlink()
    training.save(tmp_path / "cell")
    about = json.loads((tmp_path / "cell.json").read_text())
    about["numbers"]["step"] = 4
    edited = json.dumps(about)
    nameless, elsewhere = '{"tensors": 3, "sha256": ""}', '{"tensors": "../../x", "sha256": ""}'

    def found(text):
        (tmp_path / "cell.json").write_text(text)
        return scratch.read_checkpoint(tmp_path / "cell")

    assert [found(text) for text in (edited, "[" * 100_000, "", "{", "[]", nameless, elsewhere)] == [None] * 7


def test_one_checkpoint_is_kept(tiny, tmp_path):
    training = Training(SPEC, "plu", 0, tiny)
    for _ in range(3):
        training.advance()
        training.save(tmp_path / "cell")
    assert len(list(tmp_path.glob("cell*"))) == 2
