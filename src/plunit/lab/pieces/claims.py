"""What the paper says of the number of pieces, what theory expects of random networks, and what training does."""

from __future__ import annotations

from plunit.lab.claims import Claim, Range, measure, median, median_ratio
from plunit.lab.fit.spec import NOUNS, SECTIONS, SPECS
from plunit.lab.results import Results
from plunit.lab.store import Arrays
from plunit.lab.style import label

_STAGES = {
    "initial": "Before training, with biases 0,",
    "random": "Before training, but with biases N(0, 1),",
}


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run."""
    rows: list[Claim] = []
    for name in SPECS:
        if results.has(name, "relu", "plu"):
            relu, plu = results[name, "relu"], results[name, "plu"]
            rows.append(_trained(name, relu, plu))
            if SPECS[name].target == "curve":
                rows.append(_five(name, relu))
            rows += [_theory(name, stage, relu, plu) for stage in _STAGES]
            rows += [_training(name, activation, results[name, activation]) for activation in ("relu", "plu")]
    return rows


def _trained(name: str, relu: Arrays, plu: Arrays) -> Claim:
    """Section 3 says "abundantly more", sections 2 and 4 say more."""
    abundantly = SPECS[name].target == "curve"
    more = "abundantly more" if abundantly else "more"
    return measure(
        name,
        SECTIONS[name],
        f"Trained on {NOUNS[name]}, PLU networks have {more} pieces than ReLU's.",
        _ratio("trained", relu, plu),
        median_ratio,
        plu["trained_pieces"],
        relu["trained_pieces"],
        claimed=Range(low=2 if abundantly else 1.1),
        weaker=Range(low=1),
    )


def _five(name: str, relu: Arrays) -> Claim:
    return measure(
        name,
        SECTIONS[name],
        f"Trained on {NOUNS[name]}, the ReLU network has 5 line segments.",
        f"median of pieces; of patterns {median(relu['trained_patterns']):g}",
        median,
        relu["trained_pieces"],
        claimed=Range(5, 5),
        weaker=Range(4, 6),
    )


def _theory(name: str, stage: str, relu: Arrays, plu: Arrays) -> Claim:
    """A unit of PLU has two kinks and one of ReLU has one: k kinks cut a line in about k pieces, a plane in k^2."""
    line = SPECS[name].widths[0] == 1
    times = "about twice as many pieces" if line else "two to four times as many cells"
    return measure(
        name,
        "ours",
        f"{_STAGES[stage]} PLU networks have {times} on the domain of {NOUNS[name]}, as theory expects.",
        _ratio(stage, relu, plu),
        median_ratio,
        plu[f"{stage}_pieces"],
        relu[f"{stage}_pieces"],
        claimed=Range(1.5, 2.5) if line else Range(2, 4),
        weaker=Range(1.25, 3) if line else Range(1.5, 5),
    )


def _training(name: str, activation: str, arrays: Arrays) -> Claim:
    trained, start = arrays["trained_pieces"], arrays["initial_pieces"]
    return measure(
        name,
        "ours",
        f"Training on {NOUNS[name]} gives {label(activation)} networks more pieces.",
        f"median of pieces trained / initial; medians {median(trained):g} and {median(start):g}",
        median_ratio,
        trained,
        start,
        claimed=Range(low=1.1),
        weaker=Range(low=1),
    )


def _ratio(stage: str, relu: Arrays, plu: Arrays) -> str:
    pieces, patterns = (
        " and ".join(f"{median(arrays[f'{stage}_{kind}']):g}" for arrays in (plu, relu))
        for kind in ("pieces", "patterns")
    )
    return f"median of pieces PLU / ReLU; medians {pieces}, of patterns {patterns}"
