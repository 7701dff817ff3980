"""The best network of an activation as the content of a file; nothing is written."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from plunit.ensemble import Network
from plunit.ensemble.arrays import Array
from plunit.ensemble.members import PIECEWISE, exact
from plunit.ensemble.network import spread
from plunit.ensemble.units import in_units
from plunit.errors import UserError
from plunit.pieces import Network as Exact
from plunit.pieces.boxes import box_array
from plunit.pieces.formats import json_text, onnx_model
from plunit.pieces.formats.c_network import network_header
from plunit.play.courses import BATCH, WHOLE, Snapshot
from plunit.play.frames import Reply
from plunit.play.settings import Settings
from plunit.play.targets import Task

TORCH = {
    "tanh": "nn.Tanh()",
    "relu": "nn.ReLU()",
    "identity": "nn.Identity()",
    "leaky_relu": "nn.LeakyReLU()",
    "hardtanh": "nn.Hardtanh()",
    "gelu": "nn.GELU()",
    "silu": "nn.SiLU()",
    "elu": "nn.ELU()",
}
"""Activations in PyTorch; the others are PLU."""

_TORCH = """\
# {about}
import torch
from torch import nn
{imports}
model = nn.Sequential(
{modules}
).double()
parameters = [
{parameters}
]
with torch.no_grad():
    for old, new in zip(model.parameters(), parameters, strict=True):
        old.copy_(torch.tensor(new, dtype=torch.float64))
"""

_PYTHON = """\
# {about}
{command}# The same network again, to the bit:
from pathlib import Path

import numpy as np

from plunit.ensemble import Network, Rows, forward, initial, train
from plunit.ensemble.units import in_units
from plunit.play.targets import task_of

task = task_of({target})
x, y = task.scaled
shape = {{"alpha": {alpha!r}, "c": {c!r}}}
network = Network({widths}, {activation!r})
start = initial(network, [np.random.default_rng([{seed}, {member}])], **shape)
trained = train(network, start, Rows(x, y, batch={batch}, seeds=[{member}]), steps={steps}, lr={lr!r}, **shape)
theta = in_units(network, trained.theta, *task.scales)
error = forward(network, theta, task.x.T, **shape)[:, :, 0].T - task.y
print(f"mean square error {{np.mean(error**2):.4g}}")
"""


class Best(NamedTuple):
    """The network with the least loss: its number, and its parameters [rows, 1] in the units of the user."""

    task: Task
    settings: Settings
    now: Snapshot
    member: int
    theta: Array

    @property
    def network(self) -> Network:
        """The form."""
        return self.now.network

    @property
    def about(self) -> str:
        """One line about it."""
        widths = "-".join(map(str, self.network.widths))
        return (
            f"{' '.join(self.task.title.split())[:100]}: the best of {self.now.theta.shape[1]} networks {widths} of "
            f"{self.network.activation} after {self.now.step} steps, loss {self.now.loss[self.member]:.4g}"
        )

    def exact(self) -> Exact:
        """Return it for `plunit.pieces`."""
        if self.network.activation not in PIECEWISE:
            raise UserError(
                f"{self.network.activation} is not piecewise linear, so it has no such file; take PyTorch, or one of "
                f"{', '.join(PIECEWISE)}"
            )
        return exact(self.network, self.theta, self.settings.alpha, self.settings.c)


def export(task: Task, settings: Settings, now: Snapshot, form: str) -> Reply:
    """Return the name, the type and the content of a file."""
    if form not in FORMATS:
        raise UserError(f"unknown format {form[:40]!r}; there are {', '.join(FORMATS)}")
    if not np.isfinite(now.loss).any():
        raise UserError(f"all networks of {now.network.activation} have diverged; take a smaller lr")
    member = int(np.nanargmin(np.where(np.isfinite(now.loss), now.loss, np.nan)))
    theta = in_units(now.network, now.theta[:, [member]], *task.scales)
    ending, kind, content = FORMATS[form]
    try:
        found = content(Best(task, settings, now, member, theta))
    except (ImportError, ValueError) as error:
        raise UserError(str(error)) from None
    payload = found if isinstance(found, bytes) else found.encode()
    return Reply({"name": f"{now.network.activation}{ending}", "mime": kind}, payload)


def _c(best: Best) -> str:
    net = best.exact()
    return network_header(net, "network", "double", box_array(net, best.task.box.tolist()), 16)


def _torch(best: Best) -> str:
    alphas, cs = best.network.shapes(
        best.theta, *(spread(best.network, best.theta, v) for v in (best.settings.alpha, best.settings.c))
    )
    modules, parameters = [], []
    for i, (weight, bias) in enumerate(best.network.layers(best.theta)):
        if i:
            plu = f"PLU(alpha={float(alphas[i - 1, 0])!r}, c={float(cs[i - 1, 0])!r})"
            modules.append(TORCH.get(best.network.activation, plu))
        modules.append(f"nn.Linear({weight.shape[1]}, {weight.shape[0]})")
        parameters += [weight[..., 0].tolist(), bias[:, 0].tolist()]
    return _TORCH.format(
        about=best.about,
        imports="" if best.network.activation in TORCH else "\nfrom plunit.torch import PLU\n",
        modules="\n".join(f"    {module}," for module in modules),
        parameters="\n".join(f"    {numbers}," for numbers in parameters),
    )


def _fit(best: Best) -> str:
    settings, task = best.settings, best.task
    target = repr(settings.target)
    if settings.target["kind"] == "csv":
        target = f"{{'kind': 'csv', 'text': Path({task.title!r}).read_text(encoding='utf-8')}}"
    elif settings.target["kind"] == "drawn":
        target = repr({"kind": "drawn", "points": np.column_stack([task.x, task.y]).tolist()})
    return _PYTHON.format(
        about=best.about,
        command=_command(best),
        target=target,
        widths=best.network.widths,
        activation=best.network.activation,
        seed=settings.seed,
        member=best.member,
        batch=BATCH if len(task.y) > WHOLE else 0,
        steps=best.now.step,
        **{name: getattr(settings, name) for name in ("alpha", "c", "lr")},
    )


def _command(best: Best) -> str:
    """Return comments with the command of `plunit fit`; "" for what it does not take."""
    settings, task = best.settings, best.task
    kind = settings.target["kind"]
    if kind == "drawn" or task.outputs > 1:
        return ""
    words = ["plunit", "fit", task.title]
    words += [f"--target={task.target}"] if kind == "csv" else [f"--low={task.box[0, 0]}", f"--high={task.box[0, 1]}"]
    hidden = ",".join([str(settings.width)] * settings.depth)
    words += [f"--hidden={hidden}", f"--activation={best.network.activation}", f"--starts={settings.networks}"]
    line = " ".join(shlex.join([*words, f"--seed={settings.seed}"]).split())
    return f"# In a terminal, where worse networks end early and the best goes on:\n#   {line}\n"


FORMATS: dict[str, tuple[str, str, Callable[[Best], Any]]] = {
    "c": (".h", "text/x-c", _c),
    "onnx": (".onnx", "application/octet-stream", lambda best: onnx_model.bytes_of(best.exact())),
    "json": (".json", "application/json", lambda best: json_text.text_of(best.exact())),
    "torch": ("_torch.py", "text/x-python", _torch),
    "fit": ("_fit.py", "text/x-python", _fit),
}
"""The ending, the type and the content of each format."""
