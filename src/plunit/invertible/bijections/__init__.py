"""Bijections of R^n as PyTorch modules: the contract, chains, and every layer.

Points enter, and the image with log|det| leaves; the same in reverse. Start with `bijection.py`, whose class
`Bijection` has the check-list for a new one; `elementwise.py` has short examples.
"""
