"""The parts of experiments that read: stored arrays become rows, claims and figures; nothing trains here.

A file for each experiment of `plunit.lab.train`, with the same name; each ends with its `EXPERIMENTS`. Start with
`depth.py`, the shortest.
"""
