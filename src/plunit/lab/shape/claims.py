"""How good the paper's alpha = 0.1, c = 1 is: a question of ours, the paper makes no claim."""

from __future__ import annotations

import numpy as np

from plunit.lab.claims import Claim, Column, Range, measure
from plunit.lab.results import Results
from plunit.lab.shape.spec import SPECS, ShapeMap
from plunit.lab.store import Arrays

_NOUNS = {"map-sine": "the sine", "map-parametric": "the parametric curve"}


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run."""
    return [
        _choice(name, spec, table(spec, results[name, "plu"]))
        for name, spec in SPECS.items()
        if results.has(name, "plu")
    ]


def table(spec: ShapeMap, arrays: Arrays) -> Column:
    """Return the final losses as [alphas, cs, seeds]; losses that diverged are infinite."""
    losses = arrays["final_loss"].reshape(-1, len(spec.alphas), len(spec.cs))
    return np.nan_to_num(np.moveaxis(losses, 0, -1), nan=np.inf, posinf=np.inf)


def _choice(name: str, spec: ShapeMap, losses: Column) -> Claim:
    chosen = spec.alphas.index(spec.fit.alpha), spec.cs.index(spec.fit.c)

    def rank(*columns: Column) -> Column:
        medians = np.stack([np.median(column, axis=-1) for column in columns])
        share: Column = (medians < medians[0]).mean(axis=0)
        return share

    others = losses.reshape(-1, losses.shape[-1])
    return measure(
        name,
        "ours",
        f"alpha = {spec.fit.alpha:g}, c = {spec.fit.c:g} is among the best tenth of the map for {_NOUNS[name]}.",
        "share of the map with a lower median loss",
        rank,
        losses[chosen],
        *others,
        claimed=Range(0, 0.1),
        weaker=Range(0, 0.25),
    )
