"""Train the network of one cell, from its last checkpoint if it has one."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plunit.ensemble import one_thread
from plunit.lab import scratch as scratches
from plunit.lab.cell import Cell
from plunit.lab.cifar10 import checkpoint
from plunit.lab.cifar10.network import network
from plunit.lab.cifar10.spec import Cifar10
from plunit.lab.data import cifar10 as data
from plunit.lab.data.layout import Bytes, Labels
from plunit.lab.store import Arrays

SAVE_EVERY, REPORT_EVERY = 500, 20
_TEST_BATCH = 500


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Train on, from the checkpoint at `scratch` if there is one, and return what was recorded.

    The arrays are loss [steps, 1], that of each step's batch before the step; test_step, test_loss and test_accuracy
    [tests, 1]; seconds [1]; seed [1]. The checkpoint is written every `SAVE_EVERY` steps. A run that is stopped and
    goes on gives the same bits as one that is not: the batch of a step depends on the seed and its number only.
    """
    training = Training(cell.spec, cell.activation, cell.first, data.load())
    training.restore(scratch)
    while training.step < cell.spec.steps:
        training.advance()
        if training.step % REPORT_EVERY == 0:
            scratches.report(scratch, training.step / cell.spec.steps)
        if training.step % SAVE_EVERY == 0:
            training.save(scratch)
    training.save(scratch)
    return {
        "seed": np.array([cell.first]),
        "loss": np.array(training.losses, np.float32)[:, None],
        "test_step": np.array([step for step, _, _ in training.tests])[:, None],
        "test_loss": np.array([loss for _, loss, _ in training.tests])[:, None],
        "test_accuracy": np.array([accuracy for _, _, accuracy in training.tests])[:, None],
        "seconds": np.array([training.seconds]),
    }


class Training:
    """A network, its optimiser and what has been recorded so far.

    Attributes:
        step: steps taken.
        losses: the loss of each step's batch.
        tests: (step, loss, accuracy) on the test set.
        seconds: time spent in `advance`.
    """

    def __init__(self, spec: Cifar10, activation: str, seed: int, images: data.Cifar10) -> None:
        self.spec, self.seed = spec, seed
        self._device = torch.get_default_device()
        self._train = _Images(images.train_images, images.train_labels, spec, self._device)
        self._test = _Images(images.test_images, images.test_labels, spec, self._device)
        self.model = network(spec, activation, seed).to(self._device)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=spec.lr, fused=True)
        self.step = 0
        self.losses: list[float] = []
        self.tests: list[tuple[int, float, float]] = []
        self.seconds = 0.0

    def advance(self) -> None:
        """Take one step, and evaluate the test set if it is time to."""
        start = time.perf_counter()
        index = np.random.default_rng((self.seed, self.step)).integers(len(self._train), size=self.spec.batch)
        x, labels = self._train.take(torch.from_numpy(index))
        loss = F.cross_entropy(self.model(x), labels)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self.losses.append(loss.item())
        self.step += 1
        if self.spec.tested(self.step):
            self.tests.append((self.step, *evaluate(self.model, self._test)))
        self.seconds += time.perf_counter() - start

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= checkpoint.optimizer_tensors(self._optimizer)
        tensors["losses"] = torch.tensor(self.losses, dtype=torch.float32)
        numbers = {"step": self.step, "steps": self.spec.steps, "tests": self.tests, "seconds": self.seconds}
        checkpoint.write(path, tensors, numbers)

    def restore(self, path: Path) -> None:
        """Go back to the checkpoint at path, if there is a whole one."""
        if not (found := checkpoint.read(path)):
            return
        tensors, numbers = found
        prefix = "model."
        self.model.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
        checkpoint.restore_optimizer(self._optimizer, tensors)
        self.losses = tensors["losses"].tolist()
        self.step, self.seconds = numbers["step"], numbers["seconds"]
        self.tests = [(step, loss, accuracy) for step, loss, accuracy in numbers["tests"]]


class _Images:
    """Images as bytes in channels-last order, scaled when they are taken."""

    def __init__(self, images: Bytes, labels: Labels, spec: Cifar10, device: torch.device) -> None:
        self._images = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 2, 3, 1))).to(device)
        self._labels = torch.from_numpy(labels).to(device)
        self._spec = spec

    def __len__(self) -> int:
        return len(self._labels)

    def take(self, index: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Return images [n, 3, 32, 32] as floats, in the memory order of channels_last, and their labels."""
        x = self._images[index].float().div_(self._spec.scale).sub_(self._spec.shift)
        return x.permute(0, 3, 1, 2), self._labels[index]


@torch.no_grad()
def evaluate(model: nn.Module, images: _Images) -> tuple[float, float]:
    """Return mean cross-entropy and accuracy."""
    loss, right = 0.0, 0
    for first in range(0, len(images), _TEST_BATCH):
        x, labels = images.take(slice(first, first + _TEST_BATCH))
        scores = model(x)
        loss += F.cross_entropy(scores, labels, reduction="sum").item()
        right += int((scores.argmax(1) == labels).sum())
    return loss / len(images), right / len(images)
