"""Least-squares fits of data by continuous segments with free knots.

Points (x, y) enter, and a `Segments` with its curve leaves. Start with `least_squares.py`.
"""
