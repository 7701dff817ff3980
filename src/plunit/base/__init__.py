"""Shared by all rooms: one-line errors, atomic files, the cache, the machine, progress and value checks.

Nothing here depends on networks. Start with `errors.py`, the exception that the command line prints as one line.
`progress.py` defines when long work pauses, which is when Ctrl-C takes effect.
"""
