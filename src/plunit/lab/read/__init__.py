"""The parts of experiments that read: stored arrays become rows, claims and figures; nothing trains here.

A file for each experiment of `plunit.lab.train`, with its `EXPERIMENTS` at the end. Start with `depth.py`, a short one.
"""
