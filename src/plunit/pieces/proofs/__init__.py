"""What a network does in any dimension, proved: largest and smallest values, distances, slopes, properties.

A `Network`, a box and constraints enter, or a `Property`; an `Optimum` leaves, a point with its value and a bound that
no value is beyond, or a `Verdict`. Start with `questions.py` for values, `steepness.py` for slopes and `holding.py` for
properties. All of them are aims of the search in `branching.py`, whose step is `bounding.py`; `relaxation.py`,
`numpy_bounds.py` and `linear.py` state that step in NumPy, and csrc/prove.cpp computes it. Each imports those before
it alone: linear; relaxation, domain; numpy_bounds, properties; bounding; branching; questions; steepness, holding.
"""
