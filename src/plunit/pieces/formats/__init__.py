"""Curves and networks as files, one module for each format; files are checked when they are read."""
