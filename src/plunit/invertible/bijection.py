"""The contract of a bijection of R^n, and the two ways to make new ones: `Chain` and `Inverse`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Bijection(nn.Module):
    """A map y = F(x) of the last axis, one to one, that also knows its inverse and both log-determinants.

    Args:
        features: n, the size of the last axis.

    Subclasses define `forward(x) -> (y, log_det)` and `inverse(y) -> (x, log_det)`. Values have shape (..., n), the
    log-determinants shape (...): log|det dy/dx| from `forward`, log|det dx/dy| from `inverse`.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        if isinstance(features, bool) or not isinstance(features, int):
            raise TypeError(f"features must be an integer, the size of the last axis, got {features!r}")
        if features < 1:
            raise ValueError(f"features must be at least 1, got {features}; give the size of the last axis")
        self.features = features

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        raise NotImplementedError

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        raise NotImplementedError

    def lipschitz(self) -> tuple[float, float]:
        """Bounds on the Lipschitz constants of F and of its inverse, in the Euclidean norm."""
        raise NotImplementedError

    def exact(self) -> Bijection:
        """The same bijection with every rounded corner removed; itself where there are none."""
        return self

    def frozen(self) -> Bijection:
        """The same map without parameters: what they imply (matrices, slopes) is worked out once, for use."""
        raise NotImplementedError

    def faults(self, state: Mapping[str, Tensor]) -> list[str]:
        """What is wrong with a state_dict of this module; an empty list if nothing is."""
        return [
            f"{name} holds {int((~value.isfinite()).sum())} values that are not finite; a bijection needs finite ones: "
            f"load a state saved before training diverged"
            for name, value in state.items()
            if value.is_floating_point() and not value.isfinite().all()
        ] + [
            f"{name} holds {value.min().item()}; a slope or width must be positive: load another state"
            for name, value in state.items()
            if name.startswith("fixed_") and (value <= 0).any()
        ]

    def extra_repr(self) -> str:
        """Name the number of features."""
        return f"{self.features}"

    def _check(self, x: Tensor, values: tuple[Tensor, ...] = ()) -> None:
        """Raise unless the last axis has n elements, of the floating-point type of the module's values."""
        if x.ndim < 1 or x.shape[-1] != self.features:
            raise ValueError(
                f"expected {self.features} features on the last axis, got a tensor of shape {tuple(x.shape)}; "
                f"reshape it to (..., {self.features}) or build the bijection with the right number of features"
            )
        wanted = next((value.dtype for value in values if value.is_floating_point()), x.dtype)
        if not x.is_floating_point() or x.dtype != wanted:
            raise TypeError(
                f"{type(self).__name__} holds {wanted} and got {x.dtype}; convert the input, or the module by "
                f".to(dtype), and keep autocast off: inverses need the digits"
            )

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *args: Any) -> None:
        # all parts are looked at before the first is loaded: a state with a fault changes nothing
        found = [
            f"{prefix}{path}{'.' if path else ''}{fault}"
            for path, module in self.named_modules()
            if isinstance(module, Bijection)
            for fault in module.faults(_of_same_shape(module, state_dict, f"{prefix}{path}{'.' if path else ''}"))
        ]
        if found:
            raise RuntimeError("\n".join(found))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _of_same_shape(module: nn.Module, state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    """Return what a state_dict has for a module and fits it; PyTorch itself reports what does not."""
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    values = {name: state.get(f"{prefix}{name}") for name in own}
    return {
        name: value for name, value in values.items() if isinstance(value, Tensor) and value.shape == own[name].shape
    }


class Leaf(Bijection):
    """A bijection whose two directions are pure functions of the input and of values that its parameters imply."""

    def values(self) -> tuple[Tensor, ...]:
        """What `evaluate` needs of the parameters."""
        raise NotImplementedError

    def inverse_values(self) -> tuple[Tensor, ...]:
        """What `invert` needs of the parameters."""
        return self.values()

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        raise NotImplementedError

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        values = self.values()
        self._check(x, values)
        return self.evaluate(x, *values)

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        values = self.inverse_values()
        self._check(y, values)
        return self.invert(y, *values)

    def frozen(self) -> Frozen:
        """The same map, its values worked out."""
        return Frozen(self)


class Frozen(Leaf):
    """A leaf with its values as buffers in place of parameters."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf.features)
        self.kind = type(leaf).__name__
        self.evaluate, self.invert = leaf.evaluate, leaf.invert  # type: ignore[method-assign]
        self._bounds = leaf.lipschitz()
        with torch.no_grad():
            groups = {"value": leaf.values(), "inverse_value": leaf.inverse_values()}
        for name, values in groups.items():
            for index, value in enumerate(values):
                self.register_buffer(f"{name}_{index}", value.detach().clone())
        self._counts = {name: len(values) for name, values in groups.items()}

    def values(self) -> tuple[Tensor, ...]:
        """The stored values."""
        return self._stored("value")

    def inverse_values(self) -> tuple[Tensor, ...]:
        """The stored values of the inverse."""
        return self._stored("inverse_value")

    def lipschitz(self) -> tuple[float, float]:
        """The bounds of the leaf."""
        return self._bounds

    def extra_repr(self) -> str:
        """Name the leaf's class and the number of features."""
        return f"{self.kind}, {self.features}"

    def _stored(self, name: str) -> tuple[Tensor, ...]:
        buffers = self._buffers
        return tuple(buffers[f"{name}_{index}"] for index in range(self._counts[name]))  # type: ignore[misc]


class Chain(Bijection):
    """F = F_k o ... o F_1: the bijections one after the other, log-determinants added.

    >>> from plunit.invertible import PLU, Permutation
    >>> chain = Chain(Permutation([1, 0]), PLU(2))
    >>> y, log_det = chain(torch.tensor([0.5, 2.0]))
    >>> y
    tensor([1.1000, 0.5000])
    >>> chain.inverse(y)[0]
    tensor([0.5000, 2.0000])
    """

    def __init__(self, *bijections: Bijection) -> None:
        if not bijections:
            raise ValueError("a Chain needs at least one bijection, got none; ScaleShift(features) is the identity")
        if strange := [type(part).__name__ for part in bijections if not isinstance(part, Bijection)]:
            raise TypeError(f"a Chain takes bijections, got {', '.join(strange)}; of a network take its .bijection")
        sizes = [bijection.features for bijection in bijections]
        if len(set(sizes)) > 1:
            raise ValueError(f"the bijections of a Chain must have the same number of features, got {sizes}")
        super().__init__(sizes[0])
        self.bijections = nn.ModuleList(bijections)

    def parts(self) -> list[Bijection]:
        """The bijections, first applied first."""
        return list(self.bijections)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Apply all bijections."""
        total: Tensor | float = 0.0
        for bijection in self.bijections:
            x, log_det = bijection(x)
            total = total + log_det
        return x, total  # type: ignore[return-value]

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Undo all bijections, last first."""
        total: Tensor | float = 0.0
        for bijection in reversed(self.parts()):
            y, log_det = bijection.inverse(y)
            total = total + log_det
        return y, total  # type: ignore[return-value]

    def lipschitz(self) -> tuple[float, float]:
        """The products of the bounds."""
        forward, backward = 1.0, 1.0
        for bijection in self.parts():
            ahead, back = bijection.lipschitz()
            forward, backward = forward * ahead, backward * back
        return forward, backward

    def frozen(self) -> Chain:
        """The chain of the frozen bijections."""
        return Chain(*(bijection.frozen() for bijection in self.parts()))

    def exact(self) -> Chain:
        """The chain of the exact bijections."""
        return Chain(*(bijection.exact() for bijection in self.parts()))

    def faults(self, state: Mapping[str, Tensor]) -> list[str]:
        """None of its own: the parts look after their states."""
        return []

    def extra_repr(self) -> str:
        """Nothing beyond the parts."""
        return ""


class Inverse(Bijection):
    """F^-1 as a bijection: forward and inverse exchanged."""

    def __init__(self, bijection: Bijection) -> None:
        super().__init__(bijection.features)
        self.bijection = bijection

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F^-1(x)."""
        return self.bijection.inverse(x)

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(y)."""
        return self.bijection(y)  # type: ignore[no-any-return]

    def lipschitz(self) -> tuple[float, float]:
        """The bounds of F, exchanged."""
        forward, backward = self.bijection.lipschitz()
        return backward, forward

    def frozen(self) -> Inverse:
        """The inverse of the frozen bijection."""
        return Inverse(self.bijection.frozen())

    def exact(self) -> Inverse:
        """The inverse of the exact bijection."""
        return Inverse(self.bijection.exact())

    def faults(self, state: Mapping[str, Tensor]) -> list[str]:
        """None of its own: the bijection looks after its state."""
        return []

    def extra_repr(self) -> str:
        """Nothing beyond the bijection."""
        return ""


def spread(value: Tensor, x: Tensor) -> Tensor:
    """Expand a log-determinant that is the same for all samples to the batch shape of x."""
    return value.expand(x.shape[:-1])
