"""Networks in fixed point: quantised with proved formats, simulated to the bit, with a proved bound on the error.

A `Network` and a box enter `quantize`, and a `FixedNetwork` leaves, whose error `error_bound` bounds. Start with
`quantizing.py`; `integers.py` is what the C program computes, `error_bounds.py` and `zonotopes.py` bound its error.
"""
