"""Curves as files, one module for each format: what it writes, and what it reads back after checking it."""
