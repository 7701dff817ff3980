"""The parts of experiments that train: a frozen spec and a function from a cell to arrays.

These files and all that they import are hashed into the keys of cells. Start with `depth.py`; `plunit.lab.read` has the
other half of each experiment.
"""
