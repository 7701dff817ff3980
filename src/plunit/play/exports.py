"""The best network as a file: C, ONNX, JSON, a PyTorch program, or a program that trains it again."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from plunit.base.errors import UserError
from plunit.base.fields import match_name
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP, exact, in_units
from plunit.ensemble.nonlinearities import module_of
from plunit.pieces import Network as Exact
from plunit.pieces.boxes import box_array
from plunit.pieces.formats import csv_json, onnx_writing
from plunit.pieces.formats.c_header import network_header
from plunit.play.frames import Reply
from plunit.play.live_training import Snapshot
from plunit.play.targets import LearningTask, Settings

_TORCH_PROGRAM = """\
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


_FIT_PROGRAM = """\
{about}{command}# The same network again, to the bit:
from pathlib import Path

import numpy as np

from plunit.ensemble import MLP, Rows, {method}, forward, initial
from plunit.ensemble.mlp import in_units
from plunit.play.targets import task_of

task = task_of({target})
x, y = task.scaled
shape = {{"alpha": {settings.alpha!r}, "c": {settings.c!r}}}
network = MLP({now.network.widths}, {now.network.activation!r})
start = initial(network, [np.random.default_rng([{settings.seed}, {member}])], **shape)
rows = Rows(x, y, batch={batch}, seeds=[{member}])
trained = {method}(network, start, rows, steps={now.step}, {rate}**shape)
theta = in_units(network, trained.theta, *task.scales)
error = forward(network, theta, task.x.T, **shape)[:, :, 0].T - task.y
print(f"mean square error {{np.mean(error**2):.4g}}")
"""


def torch_code(network: MLP, theta: Array, alpha: float = 0.1, c: float = 1.0) -> str:
    """Return a program that builds `model`, an nn.Sequential in float64, from one member theta [rows, 1]."""
    alphas, cs = network.alphas_and_cs(theta, alpha, c)
    kind = module_of(network.activation)
    modules, parameters = [], []
    for i, (weight, bias) in enumerate(network.layers(theta)):
        if i:
            plu = f"PLU(alpha={float(alphas[i - 1, 0])!r}, c={float(cs[i - 1, 0])!r})"
            modules.append(plu if kind == "PLU" else f"nn.{kind}()")
        modules.append(f"nn.Linear({weight.shape[1]}, {weight.shape[0]})")
        parameters += [weight[..., 0].tolist(), bias[:, 0].tolist()]
    return _TORCH_PROGRAM.format(
        imports="\nfrom plunit.torch import PLU\n" if kind == "PLU" else "",
        modules="\n".join(f"    {module}," for module in modules),
        parameters="\n".join(f"    {numbers}," for numbers in parameters),
    )


class Best(NamedTuple):
    """The network with the smallest loss: its number, and its parameters [rows, 1] in the units of the user."""

    task: LearningTask
    settings: Settings
    now: Snapshot
    batch: int
    member: int
    theta: Array

    @property
    def name(self) -> str:
        """The name of the file and of the C function: files of different steps hold different networks."""
        return f"{self.now.network.activation}_{self.now.step}"

    @property
    def about(self) -> str:
        """A comment that describes the network."""
        widths = "-".join(map(str, self.now.network.widths))
        return (
            f"# {' '.join(self.task.title.split())[:100]}: the best of {len(self.now.loss)} networks {widths} of "
            f"{self.now.network.activation} after {self.now.step} steps, loss {self.now.loss[self.member]:.4g}\n"
        )

    @property
    def exact(self) -> Exact:
        """The network for `plunit.pieces`."""
        return exact(self.now.network, self.theta, self.settings.alpha, self.settings.c).member(0)


def export(task: LearningTask, settings: Settings, now: Snapshot, batch: int, form: Any) -> Reply:
    """Return the name, the type and the content of a file."""
    ending, kind, content = FORMATS[match_name("format", form, FORMATS)]
    member = int(np.argsort(now.loss)[0])  # NaN is last
    if not np.isfinite(now.loss[member]):
        raise UserError(f"all {now.network.activation} networks have diverged; use a lower learning rate")
    theta = in_units(now.network, now.theta[:, [member]], *task.scales)
    best = Best(task, settings, now, batch, member, theta)
    try:
        found = content(best)
    except (ImportError, ValueError) as error:
        raise UserError(str(error)) from None
    return Reply({"name": best.name + ending, "mime": kind}, found if isinstance(found, bytes) else found.encode())


def _fit(best: Best) -> str:
    """Return a program that trains the network again, and a command of `plunit fit`."""
    settings, task = best.settings, best.task
    target, source = settings.target, [f"--low={task.box[0, 0]}", f"--high={task.box[0, 1]}"]
    written = repr(target)
    if target["kind"] == "csv":
        written = f"{{'kind': 'csv', 'text': Path({task.title!r}).read_text(encoding='utf-8')}}"
        source = [f"--target={task.target}"]
    if target["kind"] == "drawn":  # the points that the networks learn from
        written = repr({**target, "points": np.column_stack([task.x, task.y]).tolist()})
    hidden = ",".join([str(settings.width)] * settings.depth)
    networks = [f"--activation={best.now.network.activation}", f"--starts={settings.networks}"]
    title = task.title if target["kind"] == "csv" else " ".join(task.title.split())  # a file's name has its own spaces
    words = ["plunit", "fit", *source, f"--hidden={hidden}", *networks, f"--seed={settings.seed}", "--", title]
    line = shlex.join(words)
    command = f"# In a terminal, where the worse networks are dropped early:\n#   {line}\n"
    # plunit fit accepts neither drawings nor curves, and a comment must stay one line
    if target["kind"] == "drawn" or task.outputs > 1 or not line.isprintable():
        command = ""
    adam = settings.method == "adam"
    how = {"method": "train" if adam else "finish_members", "rate": f"lr={settings.lr!r}, " if adam else ""}
    return _FIT_PROGRAM.format(about=best.about, command=command, target=written, **how, **best._asdict())


def _torch(best: Best) -> str:
    return best.about + torch_code(best.now.network, best.theta, best.settings.alpha, best.settings.c)


def _c(best: Best) -> str:
    return network_header(best.exact, best.name, "double", box_array(best.exact, best.task.box.tolist()))


FORMATS: dict[str, tuple[str, str, Callable[[Best], Any]]] = {
    "c": (".h", "text/x-c", _c),
    "onnx": (".onnx", "application/octet-stream", lambda best: onnx_writing.bytes_of(best.exact)),
    "json": (".json", "application/json", lambda best: csv_json.text_of(best.exact)),
    "torch": ("_torch.py", "text/x-python", _torch),
    "fit": ("_fit.py", "text/x-python", _fit),
}
"""The ending, the type and the content of each format."""
