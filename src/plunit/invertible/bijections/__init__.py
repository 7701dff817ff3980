"""Bijections of R^n as PyTorch modules: the contract, chains, and every layer.

A bijection maps points to their images and log|det|, and back. Start with `bijection.py`, whose class `Bijection` has
the check-list for a new one; `elementwise.py` has short examples.
"""
