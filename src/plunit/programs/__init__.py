"""Compiled programs in plain C++: how they are compiled, found, checked and loaded; all their C++ is in `csrc/`.

The programs are "train" for networks, "chain" for densities and "prove" for proofs. They are called by
`plunit.ensemble` (`native_steps`, `levenberg_marquardt`, `outputs`), `plunit.densities.chain` and, in `plunit.pieces`,
`proofs.bounding`, `proofs.linear_bounds` and `fixed.zonotopes`. Start with `libraries.py`. Headers of train:
activations, level, losses, outputs, product, squares; of chain: matrices, units; of both: rows; of prove: linear,
ranges, signs; of all: interface, vector, and wide where they need it.
The native op of PyTorch is in `plunit/torch/csrc`.
"""
