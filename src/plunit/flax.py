"""PLU for Flax NNX: the layer `PLU`, fixed or learnable."""

from __future__ import annotations

from typing import Any, Literal

from plunit.base.errors import missing

try:
    from flax import nnx
except ModuleNotFoundError as error:
    raise missing(error, "flax") from None
import jax.numpy as jnp

from plunit.jax import LearnedLayer

__all__ = ["PLU"]


class PLU(LearnedLayer, nnx.Module):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), as a layer whose alpha and c may be learned.

    Args:
        alpha, c, learnable, num_parameters: as in `plunit.learned.starts`.
        axis: the channel axis, by default the last one, as in every layer of Flax.
        param_dtype: the dtype of the raw parameters.

    Shape: any; the output has the shape and dtype of the input. With num_parameters > 1, x.shape[axis] must be
    num_parameters.

    Only learned values are in the state.

    >>> PLU(alpha=0.5)(jnp.array([-2.0, 0.5, 2.0])).tolist()
    [-1.5, 0.5, 1.5]
    >>> model = nnx.Sequential(nnx.Linear(2, 8, rngs=nnx.Rngs(0)), PLU(learnable=True, num_parameters=8))
    >>> model(jnp.ones((5, 2))).shape, model.layers[1].alpha.shape
    ((5, 8), (8,))
    """

    def __init__(
        self,
        alpha: float = 0.1,
        c: float = 1.0,
        *,
        learnable: bool | Literal["alpha", "c"] = False,
        num_parameters: int = 1,
        axis: int = -1,
        param_dtype: Any = jnp.float32,
    ) -> None:
        values = self._begin(alpha, c, learnable, num_parameters, axis, param_dtype)
        self.raw_alpha, self.raw_c = (None if value is None else nnx.Param(value) for value in values)
        self.param_dtype = param_dtype
