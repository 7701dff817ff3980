"""Modules of PyTorch as exact networks: a model enters, a `Network` of `plunit.pieces` in float64 leaves.

Open `network.py` first: `to_network` walks over the model. The table in `layers.py` says what each layer does to the
features, as a graph that `plunit.pieces.graphs` turns into the layers of a network. A new layer is one function and one
line in the table. `saved.py` reads files of torch.save, for `plunit.pieces.load`.
"""
