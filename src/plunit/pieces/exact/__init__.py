"""The geometry behind curves and polygons: points with rounding errors, cuts at knots, meshes, maps.

A `Network` and a box enter, and polygons with the affine map of each leave. `layer.py` has the rule of tolerance that
decides on which side of a knot a point is; start there. It imports `activation` and `arrays` alone. The others follow
in this order: crossing, mesh, partitioning; checking, polygon_set.
"""
