"""What section 5 says of the convolutional network."""

from __future__ import annotations

import numpy as np

from plunit.lab.cifar10.curves import Curve, curve
from plunit.lab.cifar10.record import read
from plunit.lab.cifar10.spec import ACTIVATIONS, SPECS
from plunit.lab.claims import Claim, Column, Range, measure, median_ratio
from plunit.lab.results import Results
from plunit.lab.style import label

_STEPS = (100, 500, 1000, 5000)
_FITS = ("sine", "parametric", "surface")


def claims(results: Results) -> list[Claim]:
    """Return the claims, each judged on the longer of this run and the stored record."""
    rows: list[Claim] = []
    for name in SPECS:
        curves, where = longest(name, results)
        if curves:
            rows += _claims(name, curves, where, results)
    return rows


def longest(name: str, results: Results) -> tuple[dict[str, Curve], str]:
    """Return the curves of this run or of the stored record, whichever is longer, and its name; none if neither is."""
    found = {}
    if results.has(name, *ACTIVATIONS):
        curves = {activation: curve(results[name, activation]) for activation in ACTIVATIONS}
        found[f"this run of {curves['plu'].steps:,} steps"] = curves
    if name in results.names() and (record := read(name)):
        found[f"the stored run of {record.curves['plu'].steps:,} steps"] = record.curves
    where = max(found, key=lambda key: found[key]["plu"].steps, default="")
    return found.get(where, {}), where


def _claims(name: str, curves: dict[str, Curve], where: str, results: Results) -> list[Claim]:
    last = curves["plu"].steps
    steps = [step for step in _STEPS if step <= last]
    start = " from gain-matched weights" if name.endswith("gain") else ""
    faster = {"claimed": Range(low=1), "weaker": Range(low=0.98)}
    rows = []
    for activation in ("tanh", "plu"):
        ours, relu = curves[activation], curves["relu"]
        sentence = f"On CIFAR-10{start}, {label(activation)} trains faster than ReLU: "
        for step in steps:
            rows.append(
                measure(
                    name,
                    "5",
                    f"{sentence}loss after {step:,} steps.",
                    f"loss of ReLU / {label(activation)}, mean of {ours.window} steps, {where}",
                    median_ratio,
                    relu.at(step),
                    ours.at(step),
                    **faster,
                )
            )
        for step in sorted({min(_STEPS[-1], last), last}):
            rows.append(
                measure(
                    name,
                    "5",
                    f"{sentence}area under the curve of {step:,} steps.",
                    f"area of ReLU / {label(activation)}, {where}",
                    median_ratio,
                    relu.area(step),
                    ours.area(step),
                    **faster,
                )
            )
    for step in [step for step in steps if step <= 500]:
        rows.append(
            measure(
                name,
                "5",
                f"On CIFAR-10{start}, the identity does well in the first steps: no worse than ReLU after {step}.",
                f"loss of identity / ReLU, mean of {curves['plu'].window} steps, {where}",
                median_ratio,
                curves["identity"].at(step),
                curves["relu"].at(step),
                claimed=Range(high=1),
                weaker=Range(high=1.05),
            )
        )
    if all(results.has(fit, "relu", "plu") for fit in _FITS):
        smallest = min(float(_fit_ratio(fit, results)) for fit in _FITS)
        rows.append(
            measure(
                name,
                "5",
                f"CIFAR-10{start} is more favourable to ReLU than sections 2-4.",
                f"last loss of ReLU / PLU, {where}; smallest median of sections 2-4: {smallest:.3g}",
                median_ratio,
                curves["relu"].at(last),
                curves["plu"].at(last),
                claimed=Range(high=smallest),
                weaker=Range(high=smallest),
            )
        )
    accuracy = [100 * curves[activation].test_accuracy[-1] for activation in ("plu", "relu")]
    rows.append(
        measure(
            name,
            "ours",
            f"PLU's test accuracy on CIFAR-10{start} is at least that of ReLU after {last:,} steps.",
            f"percent correct, PLU - ReLU, {where}",
            _median_difference,
            *accuracy,
            claimed=Range(low=0),
            weaker=Range(low=-1),
        )
    )
    return rows


def _fit_ratio(name: str, results: Results) -> float:
    return float(median_ratio(results[name, "relu"]["final_loss"], results[name, "plu"]["final_loss"]))


def _median_difference(ours: Column, theirs: Column) -> Column:
    difference: Column = np.median(ours - theirs, axis=-1)
    return difference
