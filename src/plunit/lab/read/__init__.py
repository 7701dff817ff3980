"""The parts of experiments that read: stored arrays become rows, claims and figures; nothing trains here.

A file for each experiment of `plunit.lab.train`, with the same name and its `EXPERIMENTS` at the end; `records.py`
keeps long runs. Start with `depth.py`, a short one.
"""
