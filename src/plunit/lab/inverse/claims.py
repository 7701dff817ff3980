"""What section 6 says of inverses."""

from __future__ import annotations

from plunit.lab.claims import Claim, Column, Range, largest, mean, measure, median
from plunit.lab.inverse.spec import SPECS
from plunit.lab.results import Results
from plunit.lab.style import label

_ALL, _NONE = Range(1, 1), Range(0, 0)


def claims(results: Results) -> list[Claim]:
    """Return the claims that can be measured with what was run."""
    rows: list[Claim] = []
    for name, spec in SPECS.items():
        draw = f"of {spec.values:,} values N(0, {spec.spread:g}^2)"
        if results.has(name, "plu"):
            reached, shared = results[name, "plu"]["reached"], results[name, "plu"]["shared"]
            rows += [
                _share(
                    name,
                    "6",
                    "PLU's inverse is defined on the whole domain.",
                    f"share {draw} it takes",
                    reached.min(0),
                    _ALL,
                ),
                _share(name, "6", "PLU is one to one.", f"share {draw} with the output of another", shared, _NONE),
            ]
        if results.has(name, "relu"):
            shared = results[name, "relu"]["shared"]
            sentence = "ReLU is not an invertible function."
            rows.append(
                _share(name, "6", sentence, f"share {draw} with the output of another", shared, Range(low=0.01))
            )
        if results.has(name, "leaky_relu"):
            shared = results[name, "leaky_relu"]["shared"]
            rows.append(
                _share(name, "6", "LeakyReLU is invertible.", f"share {draw} with the output of another", shared, _NONE)
            )
        if results.has(name, "tanh"):
            inside, outside = results[name, "tanh"]["reached"]
            sentence = "tanh's inverse is defined on (-1, 1) only:"
            rows += [
                _share(name, "6", f"{sentence} everywhere inside.", f"share {draw} inside that it takes", inside, _ALL),
                _share(
                    name, "6", f"{sentence} nowhere outside.", f"share {draw} outside that it takes", outside, _NONE
                ),
            ]
        rows += [
            _round_trip(name, activation, results) for activation in ("plu", "tanh") if results.has(name, activation)
        ]
        if results.has(name, "plu"):
            rows.append(_certificate(name, results))
    return rows


def _share(name: str, source: str, sentence: str, statistic: str, column: Column, claimed: Range) -> Claim:
    return measure(name, source, sentence, statistic, mean, column, claimed=claimed, weaker=claimed)


def _round_trip(name: str, activation: str, results: Results) -> Claim:
    spec = SPECS[name]
    depth = spec.depths.index(32) if 32 in spec.depths else len(spec.depths) - 1
    worst = results[name, activation]["error"][:, spec.dtypes.index("float32"), depth].max(0)
    return measure(
        name,
        "ours",
        f"An invertible {label(activation)} network of depth {spec.depths[depth]} returns its input in float32.",
        f"median of the largest |F^-1(F(x)) - x|, {spec.features} features, the worse of {' and '.join(spec.linears)}",
        median,
        worst,
        claimed=Range(high=1e-3),
        weaker=Range(high=1e-2),
    )


def _certificate(name: str, results: Results) -> Claim:
    arrays = results[name, "plu"]
    ratio = (arrays["error"] / arrays["bound"]).reshape(-1, arrays["seed"].size).max(0)
    return measure(
        name,
        "ours",
        "The bound of the certificate is not exceeded at any depth, PLU.",
        "largest measured error / bound over depths, layers and precisions",
        largest,
        ratio,
        claimed=Range(high=1),
        weaker=Range(high=10),
    )
