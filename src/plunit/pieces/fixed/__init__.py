"""Networks in fixed point: quantised with proved formats, simulated to the bit, with a proved bound on the error.

`quantize` makes a `FixedNetwork` from a `Network` and a box, and `error_bound` bounds its error. Start with
`quantizing.py`; `integers.py` computes what the C program computes, `error_bounds.py` and `zonotopes.py` bound its
error.
"""
