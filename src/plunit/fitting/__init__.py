"""`plunit fit`: the best small network for a table or a function, its error, and its exact formula.

A `Problem` enters `solving.solve` (open `problems`, then `solving`) and leaves as `Found`; `output` writes text, files
and the page, with the figure of `picture`. `problems` alone needs no scikit-learn: the playground uses it.
"""
