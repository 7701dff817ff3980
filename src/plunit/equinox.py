"""PLU for Equinox: the layer `PLU`, fixed or learnable."""

from __future__ import annotations

from typing import Any, Literal

from plunit.base.errors import missing

try:
    import equinox as eqx
except ModuleNotFoundError as error:
    raise missing(error, "equinox") from None
import jax
import jax.numpy as jnp

from plunit.jax import LearnedLayer

__all__ = ["PLU"]


class PLU(LearnedLayer, eqx.Module):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), as a layer whose alpha and c may be learned.

    Args:
        alpha, c, learnable, num_parameters: as in `plunit.learned.starts`.
        axis: the channel axis: 0 for the layers of `equinox.nn`, which process one sample at a time.
        dtype: the dtype of the raw parameters; JAX's default float if None.

    Shape: any; the output has the shape and dtype of the input. With num_parameters > 1, x.shape[axis] must be
    num_parameters. `equinox.nn.MLP` calls its activation unit by unit and gives each unit a copy of the parameters. So
    as its activation, a learnable PLU has num_parameters=1 and learns one value per unit.

    Only learned values are leaves of the tree.

    >>> PLU(alpha=0.5)(jnp.array([-2.0, 0.5, 2.0])).tolist()
    [-1.5, 0.5, 1.5]
    >>> mlp = eqx.nn.MLP(2, 1, width_size=8, depth=2, activation=PLU(learnable=True), key=jax.random.key(0))
    >>> mlp(jnp.ones(2)).shape, mlp.activation.alpha.shape  # layer, unit, 1
    ((1,), (2, 8, 1))
    """

    raw_alpha: jax.Array | None
    raw_c: jax.Array | None
    initial_alpha: float = eqx.field(static=True)
    initial_c: float = eqx.field(static=True)
    num_parameters: int = eqx.field(static=True)
    axis: int = eqx.field(static=True)

    def __init__(
        self,
        alpha: float = 0.1,
        c: float = 1.0,
        *,
        learnable: bool | Literal["alpha", "c"] = False,
        num_parameters: int = 1,
        axis: int = 0,
        dtype: Any = None,
    ) -> None:
        dtype = jnp.result_type(float) if dtype is None else dtype
        self.raw_alpha, self.raw_c = self._begin(alpha, c, learnable, num_parameters, axis, dtype)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return PLU(x). The key is ignored; `equinox.nn.Sequential` passes one to every layer."""
        return super().__call__(x)
