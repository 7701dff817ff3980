"""The paper's convolutional network, trained on CIFAR-10 from its last checkpoint if it has one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plunit.base.ranges import COUNT, RATE, SHARE, WIDTH, Range
from plunit.lab import cifar10_data as data
from plunit.lab import scratch as unfinished
from plunit.lab.cell import Arrays, Cell
from plunit.torch import PLU, init_
from plunit.torch.threads import one_thread

SAVE_EVERY, REPORT_EVERY = 500, 20
_TEST_BATCH = 500


@dataclass(frozen=True)
class Cifar10Spec:
    """The paper's network and training; the initialisation, the scale of the input and the tests are ours.

    Attributes:
        steps: steps of Adam.
        batch: images of each step, drawn from the training set with replacement.
        lr: Adam's step size.
        init: "default" for PyTorch's own initialisation, "gain" for `plunit.torch.init_`.
        alpha: PLU's outer slope, or its start if it is learned.
        c: half-width of PLU's inner piece, or its start.
        scale: pixels 0 to 255 are divided by `scale` ...
        shift: ... and `shift` is subtracted: 127.5 and 1 give -1 to 1.
        early: steps after which the test set is evaluated, besides the last ...
        stride: ... and every multiple of `stride`.
    """

    steps: Annotated[int, Range(1, 10**7)] = 100_000
    batch: Annotated[int, Range(1, 50_000)] = 100
    lr: Annotated[float, RATE] = 0.001
    init: Literal["default", "gain"] = "default"
    alpha: Annotated[float, SHARE] = 0.1
    c: Annotated[float, WIDTH] = 1.0
    scale: Annotated[float, Range(1e-3, 1e6)] = 127.5
    shift: float = 1.0
    early: Annotated[tuple[int, ...], COUNT] = (100, 500, 1000)
    stride: Annotated[int, COUNT] = 2500

    def is_test_step(self, step: int) -> bool:
        """Return whether the test set is evaluated after this many steps."""
        return step in self.early or step % self.stride == 0 or step == self.steps


CHOICES: dict[str, Callable[[Cifar10Spec], nn.Module]] = {
    "tanh": lambda spec: nn.Tanh(),
    "relu": lambda spec: nn.ReLU(),
    "plu": lambda spec: PLU(spec.alpha, spec.c),
    "identity": lambda spec: nn.Identity(),
    "leaky_relu": lambda spec: nn.LeakyReLU(),
    "gelu": lambda spec: nn.GELU(),
    "silu": lambda spec: nn.SiLU(),
    "plu_learned": lambda spec: PLU(spec.alpha, spec.c, learnable=True),
}
"""Activation name to the module between two layers."""


def make_network(spec: Cifar10Spec, activation: str, seed: int) -> nn.Sequential:
    """Return the untrained network; all activations get the same weights from the same seed and the default start."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.MaxPool2d(2), CHOICES[activation](spec)]
        layers.append(nn.Flatten())
        for inputs, outputs in ((1024, 256), (256, 64)):
            layers += [nn.Linear(inputs, outputs), CHOICES[activation](spec)]
        model = nn.Sequential(*layers, nn.Linear(64, 10)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return init_(model) if spec.init == "gain" else model  # type: ignore[return-value]


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Train on, from the checkpoint at `scratch` if there is one, and return the recorded losses and tests.

    The arrays are loss [steps, 1], that of each step's batch before the step; test_step, test_loss and test_accuracy
    [tests, 1]; seconds [1]; seed [1]. The checkpoint is written every `SAVE_EVERY` steps. A run that is stopped and
    resumed gives the same bits as one that is not: the batch of a step depends on the seed and its number only.
    """
    training = Training(cell.spec, cell.activation, cell.first, data.load())
    training.restore(scratch)
    while len(training.losses) < cell.spec.steps:
        training.advance()
        if len(training.losses) % REPORT_EVERY == 0:
            unfinished.write_progress(scratch, len(training.losses) / cell.spec.steps)
        if len(training.losses) % SAVE_EVERY == 0:
            training.save(scratch)
    training.save(scratch)
    steps, losses, accuracies = zip(*training.tests, strict=True)
    return {
        "seed": np.array([cell.first]),
        "loss": np.array(training.losses, np.float32)[:, None],
        "test_step": np.array(steps)[:, None],
        "test_loss": np.array(losses)[:, None],
        "test_accuracy": np.array(accuracies)[:, None],
        "seconds": np.array([training.seconds]),
    }


class Training:
    """A network, its optimiser, and the losses and tests so far.

    Attributes:
        losses: the loss of each step's batch; as many as steps were taken.
        tests: (step, loss, accuracy) on the test set.
        seconds: time spent in `advance`.
    """

    def __init__(self, spec: Cifar10Spec, activation: str, seed: int, images: data.Cifar10) -> None:
        self.spec, self.seed, self.images = spec, seed, images
        self.model = make_network(spec, activation, seed)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=spec.lr, fused=True)
        self.losses: list[float] = []
        self.tests: list[tuple[int, float, float]] = []
        self.seconds = 0.0

    def advance(self) -> None:
        """Take one step, and evaluate the test set if it is time to."""
        start, step = time.perf_counter(), len(self.losses)
        index = np.random.default_rng((self.seed, step)).integers(len(self.images.train_labels), size=self.spec.batch)
        x, labels = batch(self.spec, self.images.train_images[index], self.images.train_labels[index])
        loss = F.cross_entropy(self.model(x), labels)
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self.losses.append(loss.item())
        if self.spec.is_test_step(step + 1):
            self.tests.append((step + 1, *self.test()))
        self.seconds += time.perf_counter() - start

    @torch.no_grad()
    def test(self) -> tuple[float, float]:
        """Return mean cross-entropy and accuracy on the test set."""
        loss, right, count = 0.0, 0, len(self.images.test_labels)
        for first in range(0, count, _TEST_BATCH):
            part = slice(first, first + _TEST_BATCH)
            x, labels = batch(self.spec, self.images.test_images[part], self.images.test_labels[part])
            scores = self.model(x)
            loss += F.cross_entropy(scores, labels, reduction="sum").item()
            right += int((scores.argmax(1) == labels).sum())
        return loss / count, right / count

    def save(self, scratch: Path) -> None:
        """Write a checkpoint."""
        state = {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}
        recorded = {"losses": self.losses, "tests": self.tests, "seconds": self.seconds}
        unfinished.write_checkpoint(scratch, state | recorded)

    def restore(self, scratch: Path) -> None:
        """Go back to the checkpoint, if there is a complete one."""
        if state := unfinished.read_checkpoint(scratch):
            self.model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.losses, self.tests, self.seconds = (state[key] for key in ("losses", "tests", "seconds"))


def batch(spec: Cifar10Spec, images: data.Bytes, labels: data.Labels) -> tuple[Tensor, Tensor]:
    """Return images [n, 3, 32, 32] as scaled floats, in the memory order of channels_last, and their labels."""
    x = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 2, 3, 1))).float().div_(spec.scale).sub_(spec.shift)
    return x.permute(0, 3, 1, 2), torch.from_numpy(labels)
