"""What a network does in any dimension, proved: largest and smallest values, distances, slopes, counterexamples.

A `Network`, a box and constraints enter, and an `Optimum` leaves: a point, its value, and a bound that no value is
beyond. Start with `questions.py` for values and `steepness.py` for slopes; `encoding.py` is the mixed-integer program.
"""
