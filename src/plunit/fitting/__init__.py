"""`plunit fit`: the best small network for a table or a function, its error, and its exact formula.

A `Problem` enters `solving.fit_problem` (open `problems`, then `solving`) and leaves as `FitResult`; `output` writes
text, files and the page, and `drawing` draws the figure. `problems` imports scikit-learn for text and missing values
only: the playground needs none.
"""
