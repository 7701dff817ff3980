"""`plunit fit`: the best small network for a table or a function, its error, and its exact formula.

Start with `problems`, then `solving`: `fit_problem` turns a `Problem` into a `FitResult`. `curves` has the curves of
one input, `output` writes text, files and the page, and `drawing` draws the figure. `problems` imports scikit-learn
only for text and missing values, so the playground does not need it.
"""
