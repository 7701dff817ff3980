"""Networks in fixed point: quantised with proved formats, simulated to the bit, with a proved bound on the error."""
