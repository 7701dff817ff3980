"""Curves on a line and polygons on a plane: points with rounding errors, cuts at knots, affine maps, drawing.

Input: a `Network` and an interval or a box. Output: a `Curve` or `Polygons`. Open `line_curves.py` or `polygon_set.py`
first. `tolerance.py` has the rule that decides on which side of a knot a point lies. The other files, in this order:
limits, crossing; polylines for curves; mesh for polygons; affine_maps; agreement, which compares values with slopes;
pictures. This room imports only the core, which is the files of `pieces` itself.
"""
