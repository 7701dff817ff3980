"""The parts of experiments that read: stored arrays become rows, statistics and figures; nothing trains here.

Each file is named after its experiments, listed at its end in `EXPERIMENTS`. Start with `depth.py`, a short one.
"""
