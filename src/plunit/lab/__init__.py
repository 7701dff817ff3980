"""The paper's experiments, and your own, over many seeds: cells, their store, claims, figures and the report.

A request becomes a plan (`plan.py`), a plan cells that are trained (`train/`) and stored, and stored cells become
tables, claims and a report (`read/`, `publishing.py`). Open `experiment.py` first: its class is the check-list.
`claims.py` has the rule of verdicts, `story.py` the verdict on a statement, `running.py` workers and Ctrl-C.
"""
