"""The contract of a bijection: `Bijection`, and `Leaf` and `Elementwise` for custom layers.

`walk` maps samples, as columns, through a sequence of leaves; the values of all leaves of a kind are computed together.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

Values = tuple[Tensor, ...]
LeafSteps = Sequence[tuple["Leaf", bool]]
"""Leaves in the order of application, each with whether its inverse is applied."""

Rule = tuple[Callable[[Tensor], bool], str]
"""A test whether a tensor can be loaded, and the rule as a text."""

_OWN = frozenset(vars(nn.Module())) - {"training"}  # attributes of every module


def walk(user: Bijection, x: Tensor, steps: LeafSteps, values: Sequence[Values] | None = None) -> tuple[Tensor, Tensor]:
    """Return the images of the samples x (..., n) and their log-determinants; `values` are columns."""
    values = imply_all(steps) if values is None else values
    user._check(x, (value for each in values for value in each))
    y = x.reshape(-1, x.shape[-1]).mT
    apart: list[Tensor] = []
    shared: list[Tensor] = []
    for (leaf, inverted), known in zip(steps, values, strict=True):
        term = leaf.boundary_term(y, *known)
        y, log_slopes = (leaf.invert if inverted else leaf.evaluate)(y, *known)
        (apart if log_slopes.shape[1] == y.shape[1] else shared).append(log_slopes)
        if term is not None:
            apart.append(term)
    sums = [_sum_slopes(each) for each in (apart, shared) if each]
    total = sum(sums[1:], start=sums[0])
    return y.mT.reshape(x.shape), total.expand(y.shape[-1]).reshape(x.shape[:-1])


def _sum_slopes(log_slopes: list[Tensor]) -> Tensor:
    """Return the sum over all leaves and features: one number for each sample, or one that all share."""
    return log_slopes[0].sum(0) if len(log_slopes) == 1 else torch.stack(log_slopes).sum((0, 1))


def imply_all(steps: LeafSteps) -> list[Values]:
    """Return the values of all leaves, as columns."""
    kinds: dict[object, list[int]] = {}
    for place, (leaf, inverted) in enumerate(steps):
        kinds.setdefault((inverted, *_kind(leaf)), []).append(place)
    found: list[Values] = [()] * len(steps)
    for places in kinds.values():
        (leaf, inverted), *others = (steps[place] for place in places)
        imply = leaf.imply_inverse if inverted else leaf.imply
        if not others:
            found[places[0]] = as_columns(imply(*leaf.raw()))
            continue
        together = as_columns(imply(*stack_raw([steps[place] for place in places])), axes=2)
        for place, *values in zip(places, *(value.unbind() for value in together), strict=True):
            found[place] = tuple(values)
    return found


def _kind(leaf: Leaf) -> Iterator[object]:
    """Yield the properties that leaves of one kind share: the class, and all attributes that `raw` does not return.

    An unhashable attribute, such as a list, makes a leaf the only one of its kind.
    """
    yield type(leaf)
    yield from leaf._parameters
    yield from leaf._modules.values()
    for name, value in vars(leaf).items():
        if name not in _OWN:
            try:
                hash(value)
            except TypeError:
                value = id(value)
            yield name, value


def stack_raw(steps: LeafSteps) -> list[Tensor]:
    """Return the raw tensors of leaves of a kind, stacked."""
    return [torch.stack(tensors) for tensors in zip(*(leaf.raw() for leaf, _ in steps), strict=True)]


def as_columns(values: Values, axes: int = 1) -> Values:
    """Return values with floating-point vectors as columns; orders, which are integers, are unchanged."""
    return tuple(value[..., None] if value.ndim == axes and value.is_floating_point() else value for value in values)


def reverse(steps: Sequence[tuple[Any, bool]]) -> list[tuple[Any, bool]]:
    """Return the steps of the inverse: in reverse order, each inverted."""
    return [(step, not inverted) for step, inverted in reversed(steps)]


class Bijection(nn.Module):
    """A one-to-one map y = F(x) of the last axis, with its inverse and both log-determinants.

    Args:
        features: n, the size of the last axis.

    `forward(x)` returns (y, log_det), and `inverse(y)` returns (x, log_det). Values have shape (..., n), the
    log-determinants shape (...): log|det dy/dx| from `forward`, log|det dx/dy| from `inverse`.

    Check-list for a new one. Usually it is a `Leaf`, or an `Elementwise` if each feature is mapped separately:

    1. `raw()` returns the parameters and buffers: vectors [n] and matrices. `imply(*raw)` returns the values that
       `evaluate` needs, and `imply_inverse(*raw)`, if they differ, those that `invert` needs. Both accept leading
       axes, because a chain computes all leaves of a kind together: those of the same class whose attributes, other
       than parameters and buffers, are equal.
    2. `evaluate(x, *values)` and `invert(y, *values)` are static and pure. They get samples as columns [n, m] and
       vectors as columns [n, 1], and return columns and log-slopes, [n, m] or, if all samples share them, [n, 1]. The
       sum of the log-slopes over the features is the log-determinant.
    3. `lipschitz()` returns bounds for F and for its inverse; `math.inf` where there is none.
    4. A kinked leaf returns its boundary term from `boundary_term`. A rounded one returns the leaf without rounded
       corners from `sharp`. `rules` has the conditions on its state other than finite numbers.
    5. `Leaf` defines `forward`, `inverse` and `leaves`, and checks inputs.
    6. Add its name to `plunit.invertible.__all__`, and a row to `KINDS` of saving.py, so that it can be saved.
    7. Add a line to `BIJECTIONS` of tests/invertible/conftest.py, which runs all tests: round trip, log-determinants
       against autograd's Jacobian, dtypes, messages, Lipschitz bounds, freezing, stacked parameters, files.

    Combine bijections with `Chain` and `Inverse`. Any other class defines `forward`, `inverse`, `lipschitz` and
    `leaves`, and calls `_check` on every input.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}
    """Conditions on a state_dict, by the names of tensors."""

    def __init__(self, features: int) -> None:
        super().__init__()
        if isinstance(features, bool) or not hasattr(features, "__index__"):
            raise TypeError(f"features must be an integer, the size of the last axis, got {features!r}")
        if features < 1:
            raise ValueError(f"features must be at least 1, got {features}; give the size of the last axis")
        self.features = operator.index(features)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        raise NotImplementedError

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        raise NotImplementedError

    def lipschitz(self) -> tuple[float, float]:
        """Return bounds on the Lipschitz constants of F and of its inverse, in the Euclidean norm."""
        raise NotImplementedError

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """Return the leaves in the order of application, each with whether its inverse is applied."""
        raise NotImplementedError(f"{type(self).__name__} has no method `leaves`, so it cannot be frozen; define it")

    def sharp(self) -> Any:
        """Return the same bijection without rounded corners; it shares all parameters."""
        return copy_sharp(self)

    @property
    def kind(self) -> str:
        """The name of the class, even if torch.nn.utils.parametrize has replaced it."""
        return type(self).__name__.removeprefix("Parametrized")

    def _check(self, x: Tensor, values: Iterable[Tensor] = ()) -> None:
        """Raise unless x is a tensor with n features on the last axis, in the dtype of the module's values."""
        if not isinstance(x, Tensor):
            raise TypeError(f"{self.kind} expects a tensor, got {type(x).__name__}; convert it with torch.as_tensor")
        if x.ndim < 1 or x.shape[-1] != self.features:
            raise ValueError(
                f"expected {self.features} features on the last axis, got a tensor of shape {tuple(x.shape)}; "
                f"reshape it to (..., {self.features}) or build the bijection with this number of features"
            )
        device = x.device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            raise TypeError(f"{self.kind} needs full precision for its inverse; disable autocast around it")
        held = {value.dtype for value in values if value.is_floating_point()}
        if not x.is_floating_point() or not held <= {x.dtype}:
            wanted = next(iter(held - {x.dtype}), torch.get_default_dtype())
            raise TypeError(
                f"{self.kind} holds {wanted} but got {x.dtype}; convert the input, or the module by .to(dtype)"
            )

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        # all parts are checked before the first is loaded, so that an invalid state changes nothing
        if found := faults(self, state_dict, prefix):
            raise RuntimeError("\n".join(found))
        super()._load_from_state_dict(state_dict, prefix, *args)


def copy_sharp(module: nn.Module) -> nn.Module:
    """Return a copy of a module in which all bijections are sharp; it shares all parameters."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    for name, part in module._modules.items():
        if isinstance(part, (Bijection, nn.ModuleList)):
            twin._modules[name] = part.sharp() if isinstance(part, Bijection) else copy_sharp(part)
    return twin


def faults(module: nn.Module, state: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return a line for each tensor of a state_dict that is invalid for a module; names begin with `prefix`."""
    found = []
    for path, part in module.named_modules():
        start, rules = f"{prefix}{path}." if path else prefix, getattr(part, "rules", {})
        for name, held in {**part._parameters, **part._buffers}.items():
            value = state.get(start + name)
            # PyTorch itself reports missing tensors and other shapes
            if held is None or not isinstance(value, Tensor) or value.shape != held.shape:
                continue
            value = value.to(held.dtype)
            is_right, rule = rules.get(name, (lambda value: True, ""))
            if value.is_floating_point() and not value.isfinite().all():
                found.append(f"{start}{name} must be finite; load a state saved before training diverged")
            elif not is_right(value):
                found.append(f"{start}{name} must {rule}, got {value.tolist()!r:.80}; load another state")
    return found


class Leaf(Bijection):
    """A bijection whose two directions are pure functions of columns and of values computed from its parameters.

    `Bijection` has the check-list. Samples are columns, so that operations run along the many samples, not the few
    features. A chain stacks what `raw` returns for all leaves of a kind and calls `imply` once.
    """

    def raw(self) -> tuple[Tensor, ...]:
        """Return the parameters and buffers from which the values are computed: vectors [n] and matrices."""
        return ()

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the values that `evaluate` needs: vectors [..., n] and matrices [..., n, n]."""
        return raw

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the values that `invert` needs."""
        return self.imply(*raw)

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and its log-slopes."""
        raise NotImplementedError

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and the log-slopes of the inverse."""
        raise NotImplementedError

    def boundary_term(self, x: Tensor, *values: Tensor) -> Tensor | None:
        """Return 0 with the gradient of the boundary term of the log-slopes at x, or None if there is none."""
        return None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        return walk(self, x, [(self, False)])

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        return walk(self, y, [(self, True)])

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """Return the leaf itself."""
        return [(self, False)]

    def sharp(self) -> Leaf:
        """Return the leaf itself: it has no rounded corners."""
        return self

    def extra_repr(self) -> str:
        """Name the number of features."""
        return f"{self.features}"


class Elementwise(Leaf):
    """A leaf that maps each feature separately; `Bijection` has the check-list."""


def expect(bijection: object, user: str) -> None:
    """Raise TypeError unless the object is a bijection."""
    if not isinstance(bijection, Bijection):
        raise TypeError(f"{user} expects a bijection, got {type(bijection).__name__}; pass network.bijection")
