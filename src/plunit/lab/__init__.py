"""The paper's experiments, and your own, over many seeds: cells, their store, claims, figures and the report.

A request becomes a plan (`plan.py`), a plan cells that are trained (`train/`) and stored, and stored cells become
statistics (`read/`), verdicts (`claims.py`), tables and a report (`publishing.py`). Open `experiment.py` first: its
class is the check-list. `claims.py` has every claim and the rule of verdicts, `intervals.py` the estimates, and
`running.py` workers and Ctrl-C.
"""
