"""Modules of PyTorch as exact networks: a model enters, a `Network` of `plunit.pieces` in float64 leaves.

Open `network.py` first: `to_network` walks over the model, asks the table of `layers.py` what each layer is, and joins
the answers (`chains.py`). `features.py` has what those answers are made of: a new layer is one function and one line in
the table. `saved.py` reads files of torch.save, for `plunit.pieces.load`.
"""
