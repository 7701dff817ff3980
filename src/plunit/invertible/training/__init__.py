"""Training of flows by maximum likelihood: batches, screening of the data, steps, validation.

What a user gives to `Flow.fit` enters; the flow with its best parameters, and the losses, leave. Open `likelihood.py`
first: it has the whole way.
"""
