"""Proofs in any dimension: extreme values, distances, slopes and properties, of networks and of programs.

The arguments are a `Network` or a `Program`, and a box with constraints or a `Property`. The answer is an `Optimum`, a
point with its value and a proved bound, or a `Verdict`. Start with `questions.py` for values, `verdicts.py` for
properties, or `steepness.py` for slopes. Each question becomes an `Aim` that the search in `branching.py` maximises;
the aims are in `aims.py`, `program_aims.py` and `steepness.py`. `bounding.py` has one step of the search; it runs in
csrc/prove.cpp or, as the reference, in `numpy_bounds.py`. Each file imports only files that come before it in this
list: linear; properties, relaxation; numpy_bounds; bounding; branching, linear_bounds; aims; program_aims; questions;
verdicts, steepness.
"""
