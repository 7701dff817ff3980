"""Keras takes TensorFlow unless told otherwise; the tests run it on PyTorch, and `make tensorflow` on TensorFlow."""

import os
from importlib.util import find_spec

os.environ.setdefault("KERAS_BACKEND", "torch")

collect_ignore = [] if find_spec("triton") else ["src/plunit/torch/triton_kernel.py"]
