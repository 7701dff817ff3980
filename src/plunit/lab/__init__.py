"""The paper's experiments over many seeds: cells, store, claims, figures and the report. See `plunit --help`."""
