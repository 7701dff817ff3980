"""Section 5 of the paper: a small convolutional network on CIFAR-10."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cifar10:
    """The paper's network and training; the initialisation, the scale of the input and the tests are ours.

    Attributes:
        steps: steps of Adam.
        batch: images of each step, drawn from the training set with replacement.
        lr: Adam's step size.
        init: "default" for PyTorch's own initialisation, "gain" for `plunit.torch.init_`.
        alpha: PLU's outer slope, the start of a learned one.
        c: the half-width of its inner piece; likewise.
        scale: pixels 0 to 255 are divided by `scale` ...
        shift: ... and `shift` is subtracted: 127.5 and 1 give -1 to 1.
        early: steps after which the test set is evaluated, besides the last ...
        stride: ... and every multiple of `stride`.
    """

    steps: int = 100_000
    batch: int = 100
    lr: float = 0.001
    init: str = "default"
    alpha: float = 0.1
    c: float = 1.0
    scale: float = 127.5
    shift: float = 1.0
    early: tuple[int, ...] = (100, 500, 1000)
    stride: int = 2500

    def tested(self, step: int) -> bool:
        """Tell whether the test set is evaluated after this many steps."""
        return step in self.early or step % self.stride == 0 or step == self.steps


SPECS = {"cifar10": Cifar10(), "cifar10-gain": Cifar10(init="gain")}

ACTIVATIONS = ("tanh", "relu", "plu", "identity")

TITLES = {
    "cifar10": "CIFAR-10 (section 5), PyTorch's initialisation",
    "cifar10-gain": "CIFAR-10 (section 5), initialisation matched to each activation's gain",
}

SOURCES = (
    "torch",
    "functional.py",
    "learned.py",
    "gains.py",
    *(f"lab/cifar10/{name}.py" for name in ("spec", "network", "checkpoint", "compute")),
)

SHORT, SEEDS, CHUNK = 500, 1, 1
