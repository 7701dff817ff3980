"""What the paper says of sections 2-4 and, in section 7, of dead units."""

from __future__ import annotations

from collections.abc import Iterator

from plunit.lab.claims import Claim, Column, Range, mean, measure, median_ratio
from plunit.lab.fit.spec import NOUNS, SECTIONS, SPECS
from plunit.lab.results import Results


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run."""
    rows: list[Claim] = []
    for name in SPECS:
        if results.has(name, "tanh", "relu", "plu"):
            rows += _losses(name, *(results[name, a]["final_loss"] for a in ("tanh", "relu", "plu")))
        if results.has(name, "plu", "plu_learned"):
            rows.append(_learned(name, results[name, "plu_learned"]["final_loss"], results[name, "plu"]["final_loss"]))
    for name in SPECS:
        if results.has(name, "relu", "plu"):
            rows += _dead(name, results[name, "relu"]["dead"], results[name, "plu"]["dead"])
    return rows


def _losses(name: str, tanh: Column, relu: Column, plu: Column) -> Iterator[Claim]:
    noun = NOUNS[name]
    yield measure(
        name,
        SECTIONS[name],
        f"On {noun}, PLU and tanh reach similar losses.",
        "median of final loss PLU / tanh",
        median_ratio,
        plu,
        tanh,
        claimed=Range(0.5, 2),
        weaker=Range(0.2, 5),
    )
    for label, losses in (("PLU", plu), ("tanh", tanh)):
        if name == "sine":
            sentence = f"On the sine, ReLU's loss is two orders of magnitude above {label}'s."
            claimed, weaker = Range(low=100), Range(low=10)
        else:
            sentence = f"On {noun}, ReLU's loss is well above {label}'s."
            claimed, weaker = Range(low=2), Range(low=1)
        statistic = f"median of final loss ReLU / {label}"
        yield measure(
            name, SECTIONS[name], sentence, statistic, median_ratio, relu, losses, claimed=claimed, weaker=weaker
        )


def _learned(name: str, learned: Column, fixed: Column) -> Claim:
    return measure(
        name,
        "ours",
        f"On {NOUNS[name]}, learned alpha and c do better than fixed ones.",
        "median of final loss fixed / learned",
        median_ratio,
        fixed,
        learned,
        claimed=Range(low=1.1),
        weaker=Range(low=1),
    )


def _dead(name: str, relu: Column, plu: Column) -> Iterator[Claim]:
    noun = NOUNS[name]
    units = sum(SPECS[name].widths[1:-1])
    yield measure(
        name,
        "7",
        f"ReLU networks trained on {noun} have dead units.",
        "share of hidden units with slope 0 on all data",
        lambda dead: mean(dead) / units,
        relu,
        claimed=Range(low=0.01),
        weaker=Range(low=0.001),
    )
    yield measure(
        name,
        "7",
        f"PLU networks trained on {noun} have no dead units.",
        "share of hidden units with slope 0 on all data",
        lambda dead: mean(dead) / units,
        plu,
        claimed=Range(0, 0),
        weaker=Range(0, 0.001),
    )
