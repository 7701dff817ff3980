"""Proofs in any dimension: largest and smallest values, distances, slopes, properties; of networks and of programs.

A `Network` or a `Program`, a box and constraints enter, or a `Property`; an `Optimum` leaves, which is a point with its
value and a bound that no value is beyond, or a `Verdict`. Open `questions.py` first, for values and properties, or
`steepness.py` for slopes. The questions become aims in `aims.py`, which the search in `branching.py` serves.
`bounding.py` has its step, which csrc/prove.cpp computes and `numpy_bounds.py` states. Each file imports only those
before it: linear; properties, numpy_bounds; bounding; branching; aims; questions; steepness.
"""
