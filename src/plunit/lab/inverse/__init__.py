"""Section 6: which activations have an inverse, and round trips through networks of them."""
