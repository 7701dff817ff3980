"""Section 7: how the gradient of the first layer changes with depth, in fresh networks on the sine."""
