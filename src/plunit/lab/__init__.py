"""The paper's experiments, and your own, over many seeds: cells, their store, claims, figures and the report.

A request becomes a plan (`plan.py`), a plan cells that are trained (`train/`) and stored, and stored cells become
statistics (`read/`), verdicts (`claims.py`), tables and a report (`report.py`). Open `experiment.py` first: its class
is the check-list. To follow a verdict, open the experiment's file in `read/` for its statistic and `claims.py` for its
range and the rule. `intervals.py` has the estimates, and `running.py` workers and Ctrl-C.
"""
