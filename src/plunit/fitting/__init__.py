"""`plunit fit`: the best small network for a table or a function, its error, and its exact formula.

Start with `problems`, then `solving`: `fit_problem` turns a `Problem` into a `FitResult`. `curves` has the curves of
one input and the start that they give a network, `smallest` the search for the smallest network within an error, and
`lookup_table` the table that it is compared with. `output` writes text, files and the page, and `drawing` the figure.
`problems` imports scikit-learn only for text and missing values, so the playground does not need it.
"""
