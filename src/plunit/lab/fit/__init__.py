"""Sections 2-4 and 7: the sine, the parametric curve and the hyperbolic paraboloid, over many paired seeds."""
