"""The members of a fitted estimator as arrays in the units of the data, and one network that is their mean."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from plunit.ensemble import ACTIVATIONS, MLP
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import PIECEWISE
from plunit.ensemble.nonlinearities import module_of
from plunit.ensemble.outputs import output_blocks
from plunit.pieces import Curve, Polygons, curve, polygons
from plunit.pieces import Network as Exact
from plunit.pieces import network as build

if TYPE_CHECKING:
    from torch import nn


def member_mean(values: Array) -> Array:
    """Return the mean over the first axis, summed in the order of the members, whatever the number of rows."""
    return np.asarray(functools.reduce(np.add, values) / len(values))


def side_by_side(network: MLP, theta: Array) -> list[tuple[Array, Array]]:
    """Return the mean of the members as the layers (weight [out, in], bias [out]) of one network."""
    layers = [(np.moveaxis(weight, -1, 0), bias.T) for weight, bias in network.layers(theta)]
    members = theta.shape[1]
    if len(layers) == 1:
        return [(layers[0][0].mean(0), layers[0][1].mean(0))]
    first, *between, last = layers
    return [
        (first[0].reshape(-1, network.widths[0]), first[1].ravel()),
        *((_diagonal(weight), bias.ravel()) for weight, bias in between),
        (np.concatenate(list(last[0]), axis=1) / members, last[1].mean(0)),
    ]


def _diagonal(blocks: Array) -> Array:
    members, rows, columns = blocks.shape
    whole = np.zeros((members, rows, members, columns))
    whole[np.arange(members), :, np.arange(members), :] = blocks
    return whole.reshape(members * rows, members * columns)


class FittedModel(BaseEstimator):  # type: ignore[misc]
    """The chosen members: `theta_` [parameters, members] of networks `widths_`, and the range `box_` of X."""

    theta_: Array
    widths_: tuple[int, ...]
    activation_: str
    alpha_and_c_: tuple[float, float]
    box_: Array

    def _form(self) -> MLP:
        check_is_fitted(self)
        return MLP(self.widths_, self.activation_)

    def _of_outputs(self, x: Any, reduced: Callable[[Array], Array]) -> Array:
        """Return `reduced`, [rows, ...], of the members' outputs [members, rows, out], block by block of rows."""
        form, parts = self._form(), []
        x = validate_data(self, x, reset=False, dtype=np.float64)
        for block, values in output_blocks(form, self.theta_, x, *self.alpha_and_c_):
            fine = (np.abs(values) <= np.finfo(np.float64).max / len(values)).all((0, 2))  # then their sums are finite
            if not fine.all():
                row = block.start + int(fine.argmin())
                raise ValueError(
                    f"row {row} of X has values up to {np.abs(x[row]).max():.3g}, for which the networks overflow "
                    "double precision; correct the row, or scale the columns of X before fit and predict"
                )
            parts.append(reduced(values))
        return np.concatenate(parts)

    def _layers(self) -> list[tuple[Array, Array]]:
        return side_by_side(self._form(), self.theta_)

    def _unit_shapes(self) -> list[tuple[Array, Array]]:
        """Return alpha and c of the units of each hidden layer of `side_by_side`."""
        form = self._form()
        shapes = form.alphas_and_cs(self.theta_, *self.alpha_and_c_)
        widths = form.widths[1:-1]
        return [(np.repeat(a, width), np.repeat(c, width)) for a, c, width in zip(*shapes, widths, strict=True)]

    @property
    def coefs_(self) -> list[Array]:
        """The weights [in, out] of each layer of the members side by side."""
        return [weight.T for weight, _ in self._layers()]

    @property
    def intercepts_(self) -> list[Array]:
        """The biases [out] of each layer of the members side by side."""
        return [bias for _, bias in self._layers()]

    @property
    def network_(self) -> Exact:
        """The fitted function, the mean of the members, as a `plunit.pieces` network in the units of the data."""
        make = self._form().function.exact
        if make is None:
            raise AttributeError(
                f"a network of {self.activation_} is not piecewise linear and has no exact pieces; "
                f"fit with one of {', '.join(PIECEWISE)}"
            )
        first, *others = self._layers()
        layers: list[Any] = [first]
        for pair, shape in zip(others, self._unit_shapes(), strict=True):
            layers += [make(*shape), pair]
        return build(layers)

    @property
    def curve_(self) -> Curve:
        """The exact curve of a model with one input, over the range of the data."""
        self._check_inputs(1, "curve_")
        return curve(self.network_, *self.box_[0])

    @property
    def polygons_(self) -> Polygons:
        """The exact polygons of a model with two inputs, over the range of the data."""
        self._check_inputs(2, "polygons_")
        (left, right), (bottom, top) = self.box_.tolist()
        return polygons(self.network_, ((left, right), (bottom, top)))

    def _check_inputs(self, count: int, name: str) -> None:
        inputs = self._form().widths[0]
        if inputs != count:
            raise AttributeError(f"{name} is for models with {count} input{'s'[: count - 1]}; this one has {inputs}")

    def to_torch(self) -> nn.Sequential:
        """Return the fitted function, the mean of the members, as an `nn.Sequential` in float64."""
        import torch
        from torch import nn

        from plunit.torch import PLU

        name, kind, modules = self.activation_, module_of(self.activation_), list[nn.Module]()
        for i, (weight, bias) in enumerate(self._layers()):
            if i:
                alpha, c = self._unit_shapes()[i - 1]
                modules.append(PLU(float(alpha[0]), float(c[0])) if kind == "PLU" else getattr(nn, kind)())
                if ACTIVATIONS[name].learned:
                    modules[-1] = PLU(learnable=True, num_parameters=len(alpha)).double()
                    raw = {"raw_alpha": torch.from_numpy(alpha).logit(), "raw_c": torch.from_numpy(c).log()}
                    modules[-1].load_state_dict(raw)
            modules.append(nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64))
            modules[-1].load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})
        return nn.Sequential(*modules)

    def save(self, path: str | Path) -> None:
        """Write the exact function to a file; its extension is one of those of `plunit.pieces.save`.

        .h is C source with a bound on its rounding errors in the range of the data; .onnx and .json hold the network;
        .csv lists its pieces over that range, for one input. The files keep the column names of a DataFrame, such as
        `x[0] = temp` in C.
        """
        from plunit.pieces.formats.exporter import save

        save(self.network_, path, self.box_, names=getattr(self, "feature_names_in_", ()))
