"""The parts of experiments that read: stored arrays become rows, statistics and figures; nothing trains here.

A file for each experiment, with its `EXPERIMENTS` at the end; `fit.py` has what `sine.py`, `parametric.py` and
`surface.py` share. Start with `depth.py`, a short one.
"""
