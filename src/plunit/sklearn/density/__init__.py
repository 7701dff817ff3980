"""PLUDensity: the density of a table's rows by small invertible networks.

Rows enter; columns are inspected, mapped to the whole line and whitened; `plunit.densities` trains; log-densities and
random rows leave. Start with `estimator.py`.
"""
