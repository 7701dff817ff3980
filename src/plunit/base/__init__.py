"""What all rooms stand on: errors of one line, whole files, the cache, the machine, progress and allowed numbers.

Nothing here knows a network. Start with `errors.py`: the one exception that the command line turns into a line.
`progress.py` says when long work pauses, which is when Ctrl-C takes effect.
"""
