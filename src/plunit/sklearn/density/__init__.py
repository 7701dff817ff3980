"""PLUDensity: the density of a table's rows by small invertible networks.

Columns are inspected, mapped to the real line and whitened; `plunit.densities` trains. Start with `estimator.py`.
"""
