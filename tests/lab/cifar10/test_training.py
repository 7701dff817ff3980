"""Training: what a step is, what is recorded, and that a killed run goes on to the same bits."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from plunit.lab import scratch
from plunit.lab.cell import Cell
from plunit.lab.train import cifar10
from plunit.lab.train.cifar10 import CHOICES, Cifar10Spec, Training, batch, compute, make_network

SPEC = Cifar10Spec(steps=24, batch=10, early=(1, 5), stride=10)


def cell(activation="plu", seed=0, **changes):
    return Cell("cifar10", dataclasses.replace(SPEC, **changes), activation, seed, seed + 1, "", "")


def test_a_step_is_adam_on_the_mean_cross_entropy_of_the_drawn_images(tiny):
    training = Training(SPEC, "tanh", 7, tiny)
    training.advance()
    training.advance()
    model = make_network(SPEC, "tanh", 7)
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
    x, _ = batch(SPEC, tiny.train_images[:4], tiny.train_labels[:4])
    assert x.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(x, torch.from_numpy(tiny.train_images[:4]).float() / 127.5 - 1)


def test_tests_are_recorded_at_their_steps_and_are_right(tiny, tmp_path):
    arrays = compute(cell(), tmp_path / "cell")
    assert arrays["loss"].shape == (24, 1)
    assert arrays["test_step"][:, 0].tolist() == [1, 5, 10, 20, 24]
    ended = Training(SPEC, "plu", 0, tiny)
    ended.restore(tmp_path / "cell")
    with torch.no_grad():
        scores = ended.model(torch.from_numpy(tiny.test_images).float() / 127.5 - 1)
    labels = torch.from_numpy(tiny.test_labels)
    assert arrays["test_loss"][-1, 0] == pytest.approx(F.cross_entropy(scores, labels).item(), rel=1e-5)
    assert arrays["test_accuracy"][-1, 0] == (scores.argmax(1) == labels).double().mean().item()
    assert scratch.read_progress(tmp_path / "cell") > 0


def test_activations_see_the_same_batches_and_seeds_others(tiny, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        cifar10, "batch", lambda spec, images, labels: drawn.append(images) or batch(spec, images, labels)
    )
    for key in (("plu", 0), ("identity", 0), ("plu", 1)):
        Training(dataclasses.replace(SPEC, early=()), *key, tiny).advance()
    ours, theirs, others = drawn
    assert np.array_equal(ours, theirs)
    assert not np.array_equal(ours, others)


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
    recorded = ("losses", "tests", "seconds")
    assert [getattr(second, key) for key in recorded] == [getattr(first, key) for key in recorded]
    for _ in range(5):
        second.advance()
    assert second.losses == through.losses
    assert second.tests == through.tests
    torch.testing.assert_close(second.model.state_dict(), through.model.state_dict(), rtol=0, atol=0)


def test_a_damaged_checkpoint_does_not_count_and_one_is_kept(tiny, tmp_path):
    training = Training(SPEC, "plu", 0, tiny)
    for _ in range(3):
        training.advance()
        training.save(tmp_path / "cell")
    (file,) = tmp_path.glob("cell*")
    content = file.read_bytes()
    for place in (0, 40, len(content) - 3):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        fresh = Training(SPEC, "plu", 0, tiny)
        fresh.restore(tmp_path / "cell")
        assert fresh.losses == []
    for damaged in (b"", content[:20], content[:-1]):
        file.write_bytes(damaged)
        assert scratch.read_checkpoint(tmp_path / "cell") == {}
