"""PLU for Keras 3, on every backend: `plu` and `inverse` on tensors, and the layer `PLU`."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, Literal

from plunit.base.errors import missing

try:
    import keras
except ModuleNotFoundError as error:
    if not str(error.name).startswith("tensorflow"):
        raise missing(error, "keras") from None
    raise ModuleNotFoundError(
        "Keras' default backend is TensorFlow, which is not installed; set the environment variable "
        "KERAS_BACKEND to torch or jax before the first import of keras",
        name=error.name,
    ) from error
import numpy as np
from keras import ops

from plunit import learned
from plunit.functional import check, formula, inverse_formula

__all__ = ["PLU", "inverse", "plu"]


@keras.saving.register_keras_serializable(package="plunit")  # type: ignore[untyped-decorator]
def plu(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Return PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise; works as `Dense(8, activation=plu)`.

    Args:
        x: a real tensor; integers become floats.
        alpha: the outer slope, alpha >= 0; a number or a tensor that broadcasts with x.
        c: the half-width of the inner piece, c >= 0; also a number or a tensor.

    The derivative is 1 where |x| <= c, kinks included, and alpha elsewhere, on every backend (their clips differ at
    the kinks). The result has the type of x; half precision is computed in float32.

    >>> [float(y) for y in plu(ops.array([-2.0, 0.5, 2.0]), alpha=0.5)]
    [-1.5, 0.5, 1.5]
    """
    return _evaluate(formula, x, alpha, c)


def inverse(y: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Return PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), elementwise; alpha > 0.

    >>> [float(x) for x in inverse(ops.array([-1.5, 0.5, 1.5]), alpha=0.5)]
    [-2.0, 0.5, 2.0]
    """
    return _evaluate(inverse_formula, y, alpha, c)


@keras.saving.register_keras_serializable(package="plunit")
class PLU(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), as a layer whose alpha and c may be learned.

    Args:
        alpha: the outer slope, alpha >= 0; if learned, its initial value, 0 < alpha < 1.
        c: the half-width of the inner piece, c >= 0; if learned, its initial value, c > 0.
        learnable: what is learned: False (nothing), True (both), "alpha" or "c". Learned values stay within bounds.
        shared_axes: the axes along which learned values are shared: "all" for a single value, or axes as in
            `keras.layers.PReLU`: (1, 2) for one value per channel of (batch, height, width, channel), () or None for
            one per unit.
        **kwargs: those of every layer, such as `name` and `dtype`.

    The weights `raw_alpha` and `raw_c` have the axes that are not shared: 0-D if all are, 1-D for one value per
    channel. The common rule that 0-D and 1-D weights do not decay covers them, but Keras' optimizers decay every
    weight; call `optimizer.exclude_from_weight_decay(var_names=["raw_"])` to prevent that.

    >>> layer = PLU(learnable=True, shared_axes=(1, 2))
    >>> layer(ops.zeros((1, 8, 8, 3))).shape == (1, 8, 8, 3)
    True
    >>> [(weight.name, tuple(weight.shape)) for weight in layer.weights]
    [('raw_alpha', (3,)), ('raw_c', (3,))]
    """

    def __init__(
        self,
        alpha: float = 0.1,
        c: float = 1.0,
        *,
        learnable: bool | Literal["alpha", "c"] = False,
        shared_axes: Literal["all"] | int | Iterable[int] | None = "all",
        **kwargs: Any,
    ) -> None:
        starts = learned.starts(alpha, c, learnable)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.learnable = learnable
        axes: Any = (shared_axes,) if isinstance(shared_axes, numbers.Integral) else shared_axes or ()
        self.shared_axes = axes if axes == "all" else tuple(map(int, axes))
        self._alpha, self._c = float(alpha), float(c)
        self._starts = {f"raw_{name}": start for name, start in starts.items()}
        self.raw_alpha: Any = None
        self.raw_c: Any = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights, if anything is learned."""
        if not self.learnable:
            return
        own = self._own_axes(input_shape)
        if own:
            self.input_spec = keras.layers.InputSpec(ndim=len(input_shape), axes=own)
        self._shape = tuple(own.get(axis, 1) for axis in range(1, len(input_shape))) if own else ()
        for name, start in self._starts.items():
            # a plain float would be rounded to float32 here, and autocast would use half precision in a mixed policy
            constant = keras.initializers.Constant(np.float64(start))
            weight = self.add_weight(tuple(own.values()), constant, name=name, autocast=False)
            setattr(self, name, weight)

    def call(self, inputs: Any) -> Any:
        """Return PLU(inputs)."""
        return _evaluate(formula, inputs, self.alpha, self.c)

    def inverse(self, y: Any) -> Any:
        """Return the x with PLU(x) = y; alpha > 0."""
        return inverse(y, self.alpha, self.c)

    @property
    def alpha(self) -> Any:
        """The outer slope: a number, or the learned values in a shape that broadcasts with the input."""
        return self._alpha if self.raw_alpha is None else self._learned("alpha", self.raw_alpha)

    @property
    def c(self) -> Any:
        """The half-width of the inner piece, as for alpha."""
        return self._c if self.raw_c is None else self._learned("c", self.raw_c)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make the same layer."""
        own = {"alpha": self._alpha, "c": self._c, "learnable": self.learnable, "shared_axes": self.shared_axes}
        return {**super().get_config(), **own}

    def _learned(self, name: str, raw: Any) -> Any:
        wide = "float64" if self.variable_dtype == "float64" else "float32"
        return ops.reshape(learned.value_of(ops, name, ops.cast(raw, wide)), self._shape)

    def _own_axes(self, input_shape: tuple[int | None, ...]) -> dict[int, int | None]:
        """Map each axis that is not shared to its size."""
        if self.shared_axes == "all":
            return {}
        axes = range(1, len(input_shape))
        if not set(self.shared_axes) <= set(axes):
            rule = f'shared_axes must be "all" or axes from 1 to {len(axes)}'
            raise ValueError(f"{rule}, got {self.shared_axes}; axis 0 is the batch")
        own = {axis: input_shape[axis] for axis in axes if axis not in self.shared_axes}
        if None in own.values():
            raise ValueError(f"one value per unit needs sizes, got {input_shape}; add the None axes to shared_axes")
        return own


def _evaluate(function: Any, x: Any, alpha: Any, c: Any) -> Any:
    """Return the function of x as floats, half precision in float32; the result has the type of x."""
    x = ops.convert_to_tensor(x)
    dtype = keras.backend.standardize_dtype(x.dtype)
    if dtype.startswith("complex"):
        raise TypeError(f"PLU is defined for real numbers, got a tensor of {dtype}; convert it to a float dtype first")
    if "float" not in dtype:
        dtype = keras.config.floatx()
    wide = "float64" if dtype == "float64" else "float32"
    info = np.finfo(wide)
    check(alpha, c, invertible=function is inverse_formula, tiny=float(info.tiny))
    # numbers stay numbers, because `formula` is then shorter; a number that underflows must become 0 here, because
    # alpha = 0 has a special rule
    alpha, c = (
        float(info.dtype.type(min(p, float(info.max))))
        if isinstance(p, int | float)
        else ops.convert_to_tensor(p, wide)
        for p in (alpha, c)
    )
    return ops.cast(function(ops, ops.cast(x, wide), alpha, c), dtype)
