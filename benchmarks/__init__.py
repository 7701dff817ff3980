"""Timings side by side with what a user would pick instead, printed as ratios: `make bench`."""
