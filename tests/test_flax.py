"""plunit.flax.PLU inside the networks of Flax NNX; test_jax_layers.py has the values."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from plunit.flax import PLU


@pytest.mark.parametrize(
    ("learnable", "names"), [(False, []), (True, ["raw_alpha", "raw_c"]), ("alpha", ["raw_alpha"]), ("c", ["raw_c"])]
)
def test_only_what_is_learnable_is_a_parameter(learnable, names):
    layer = PLU(learnable=learnable, num_parameters=4 if learnable else 1)
    found = {path: leaf.shape for path, leaf in nnx.to_flat_state(nnx.state(layer))}
    assert found == {(name,): (4,) for name in names}
    assert found == {path: leaf.shape for path, leaf in nnx.to_flat_state(nnx.state(layer, nnx.Param))}


def test_split_and_merge():
    layer = PLU(0.3, learnable=True, num_parameters=3)
    nnx.update(layer, {"raw_c": jnp.array([-1.0, 0.0, 1.0])})
    again = nnx.merge(*nnx.split(layer))
    x = np.float32([[-9, 0.5, 9]])
    np.testing.assert_array_equal(again(x), layer(x))
    np.testing.assert_allclose(again.c, np.exp([-1.0, 0.0, 1.0]), rtol=1e-6)


def test_gradients_reach_alpha_and_c():
    x = jnp.linspace(-3, 3, 64)[:, None]
    model = nnx.Sequential(nnx.Linear(1, 16, rngs=nnx.Rngs(0)), PLU(learnable=True, num_parameters=16))
    gradient = nnx.grad(lambda model: jnp.square(model(x)).mean())(model)
    layer = gradient["layers"][1]
    assert all(np.abs(layer[name][...]).max() > 1e-3 for name in ("raw_alpha", "raw_c"))
