"""Curves with few pieces and free knots: least-squares fits of data, and the closest curves to a given one.

`least_squares.py` turns points (x, y) into `Segments`, which hold a curve. Open it first, then `search.py`, which finds
knots, and `sums.py`, which evaluates errors. `simplifying.py` turns a `Curve` into one with fewer pieces.
"""
