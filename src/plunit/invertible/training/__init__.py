"""Training of flows by maximum likelihood: batches, screening of the data, steps, validation.

What a user gives to `Flow.fit` enters, and the flow with its best parameters and a history leaves. Start with
`likelihood.py`.
"""
