"""The parts of experiments that read: stored arrays become rows, statistics and figures; nothing trains here.

A file for each family of experiments, with its `EXPERIMENTS` at the end. Start with `depth.py`, a short one.
"""
