"""Curves on a line and polygons on a plane: points with rounding errors, cuts at knots, affine maps, drawing.

A `Network` and an interval or a box enter, and a `Curve` or `Polygons` leave. `line_curves.py` and `polygon_set.py` are
the two doors. `tolerance.py` has the rule that decides on which side of a knot a point is. The others follow in this
order: limits, crossing; polylines for curves; mesh for polygons; affine_maps; agreement, which compares values with
slopes; pictures.
"""
