"""PyTorch modules as exact networks: conversion of models to `plunit.pieces` networks in float64.

Open `network.py` first: `to_network` walks over the model. The table in `layers.py` has a function for each layer,
which adds nodes to a graph that `plunit.pieces.graphs` turns into the layers of a network. A new layer is one function
and one line in the table. `saved.py` reads files of torch.save for `plunit.pieces.load`.
"""
