"""What section 7 says of vanishing gradients."""

from __future__ import annotations

from plunit.lab.claims import Claim, Range, measure, median_ratio
from plunit.lab.depth.spec import SPECS
from plunit.lab.results import Results

_START = {"paper": "with the paper's weights N(0, 1)", "fan_in": "with weights N(0, 1 / inputs)"}


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run."""
    rows: list[Claim] = []
    for name, spec in SPECS.items():
        if not results.has(name, "tanh", "plu"):
            continue
        tanh, plu = (results[name, activation]["gradient"] for activation in ("tanh", "plu"))
        start, shallow, deep = _START[spec.scale], spec.depths[0], spec.depths[-1]
        fall = f"median of |dL/dW1|, depth {deep} / depth {shallow}"
        vanishing = {"claimed": Range(high=0.01), "weaker": Range(high=0.1)}
        steady = {"claimed": Range(low=0.1), "weaker": Range(low=0.01)}
        rows += [
            measure(
                name,
                "7",
                f"Gradients vanish with depth for tanh, {start}.",
                fall,
                median_ratio,
                *tanh[[-1, 0]],
                **vanishing,
            ),
            measure(
                name,
                "7",
                f"Gradients do not vanish with depth for PLU, {start}.",
                fall,
                median_ratio,
                *plu[[-1, 0]],
                **steady,
            ),
            measure(
                name,
                "7",
                f"PLU's gradients fall less with depth than tanh's, {start}.",
                f"median of (fall for PLU) / (fall for tanh), depth {deep} / depth {shallow}",
                median_ratio,
                plu[-1] / plu[0],
                tanh[-1] / tanh[0],
                claimed=Range(low=2),
                weaker=Range(low=1),
            ),
        ]
    return rows
