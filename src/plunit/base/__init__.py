"""What all rooms build on: one-line errors, atomic files, the cache, the machine, progress and checks of numbers.

Nothing here knows a network. Start with `errors.py`: the one exception that the command line turns into a line.
`progress.py` says when long work pauses, which is when Ctrl-C takes effect.
"""
