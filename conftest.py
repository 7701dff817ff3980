"""Keras takes TensorFlow unless told otherwise; the tests run it on PyTorch, and `make tensorflow` on TensorFlow."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")
