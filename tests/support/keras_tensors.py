"""Tensors of Keras in NumPy, and gradients, on every backend."""

import keras
from keras import ops

BACKEND = keras.config.backend()


def kind(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


def array(tensor):
    """Return the tensor in NumPy; bfloat16, which NumPy lacks, as float32."""
    return ops.convert_to_numpy(ops.cast(tensor, "float32") if kind(tensor) == "bfloat16" else tensor)


def gradients(function, *arguments):
    """Return the gradient of sum(function) with respect to each argument."""
    arguments = [ops.convert_to_tensor(argument, "float32") for argument in arguments]
    if BACKEND == "torch":
        import torch

        leaves = [argument.detach().requires_grad_() for argument in arguments]
        found = torch.autograd.grad(function(*leaves).sum(), leaves)
    elif BACKEND == "jax":
        import jax

        found = jax.grad(lambda *leaves: function(*leaves).sum(), tuple(range(len(arguments))))(*arguments)
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        found = tape.gradient(result, arguments)
    return [array(gradient) for gradient in found]
