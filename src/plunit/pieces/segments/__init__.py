"""Curves of few pieces with free knots: least-squares fits of data, and the closest curves to a given one.

Points (x, y) enter `least_squares.py`, and a `Segments` with its curve leaves. A `Curve` enters `simplifying.py`, and
one with fewer pieces leaves.
"""
