"""The statements of the paper, the claims that test them, and the rule that makes verdicts.

`STATEMENTS` has the sentences, `CLAIMS` the statistic of an experiment and the range in which it must lie for each of
them, and for our own questions. `verdict` is the rule. `judge` applies it to results; claims.csv, README.md,
docs/paper.md and the report show what it returns.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, NamedTuple

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.lab.intervals import Estimate, seeds_needed
from plunit.lab.theorems import THEOREMS

if TYPE_CHECKING:
    from plunit.lab.experiment import Experiment, Results

__all__ = ["CLAIMS", "STATEMENTS", "Claim", "Judged", "judge", "verdict"]

PAPER = ("PLU: The Piecewise Linear Unit Activation Function", "https://arxiv.org/abs/1809.09534")

SECTIONS = {
    "1": "Introduction",
    "2": "Fitting elementary functions",
    "3": "Fitting parametric functions",
    "4": "Fitting 3D surfaces",
    "5": "CIFAR-10",
    "6": "Invertible networks",
    "7": "Remarks",
    "": "Our own questions",
}


class Statement(NamedTuple):
    """A sentence of the paper and its section; a theorem is checked exactly instead of measured."""

    section: str
    sentence: str
    theorem: bool = False


STATEMENTS = {
    "formula": Statement("1", "PLU(x) = max(alpha (x + c) - c, min(alpha (x - c) + c, x)).", theorem=True),
    "intro-many": Statement(
        "1", "A smooth, highly nonlinear function requires many ReLU activations, implying a network with many layers."
    ),
    "unbounded": Statement("1", "PLU is unbounded.", theorem=True),
    "segments": Statement(
        "1", "ReLU has two linear segments, with slopes 0 and 1; PLU has three, with slopes alpha and 1.", theorem=True
    ),
    "sine-pieces": Statement("2", "On the sine, ReLU networks have fewer line segments than PLU networks."),
    "sine-floor": Statement("2", "On the sine, ReLU's loss has a higher lower bound than PLU's and tanh's."),
    "sine-tanh": Statement("2", "On the sine, PLU and tanh converge to a similar loss."),
    "sine-relu": Statement("2", "On the sine, PLU's and tanh's losses are two orders of magnitude lower than ReLU's."),
    "curve-five": Statement("3", "On the parametric curve, the ReLU network has 5 line segments."),
    "curve-pieces": Statement("3", "On the parametric curve, PLU networks have abundantly more line segments."),
    "curve-relu": Statement("3", "On the parametric curve, PLU fits much closer than ReLU."),
    "curve-tanh": Statement("3", "On the parametric curve, tanh also performs well."),
    "surface-pieces": Statement("4", "On the surface, PLU networks have more linear pieces than ReLU networks."),
    "surface-tanh": Statement("4", "On the surface, PLU keeps up with tanh."),
    "surface-relu": Statement("4", "On the surface, ReLU converges to a much higher loss than PLU."),
    "cifar-favourable": Statement("5", "CIFAR-10 is more favourable to ReLU than sections 2 to 4."),
    "cifar-identity": Statement("5", "On CIFAR-10, the network with the identity does well in the first steps."),
    "cifar-faster": Statement("5", "On CIFAR-10, tanh and PLU train faster than ReLU."),
    "inverse-others": Statement(
        "6", "ReLU has no inverse, leaky ReLU has one, and tanh's is defined on (-1, 1) only.", theorem=True
    ),
    "inverse-plu": Statement("6", "PLU is invertible, with an inverse defined for all numbers.", theorem=True),
    "gradients-tanh": Statement("7", "tanh suffers from vanishing gradients."),
    "odd": Statement("7", "PLU is an odd function.", theorem=True),
    "remarks-tanh": Statement("7", "In sections 2 to 4, PLU mirrors the performance of tanh rather closely."),
    "gradients-plu": Statement("7", "PLU does not suffer from vanishing gradients."),
    "dead": Statement("7", "ReLU has the problem of dead units."),
    "remarks-cost": Statement("7", "PLU is inexpensive to compute."),
    "derivative": Statement("7", "PLU has a nonzero derivative everywhere, and so no dead units.", theorem=True),
    "remarks-nonlinear": Statement("7", "PLU's advantage over ReLU is most apparent for highly nonlinear functions."),
    "remarks-shallow": Statement("7", "PLU's advantage over ReLU is larger in shallow networks."),
}
"""The statements of the paper, in our words and in its order."""

HOLDS, WEAKER, REFUTED, UNDECIDED = VERDICTS = ("holds", "holds in a weaker form", "refuted", "undecided")
CHECKED = "checked"
"""The verdict on a theorem all of whose checks come out."""

RULE = (
    "A claim names a statistic and the range in which it must lie. It holds if the whole 95 % interval lies in that "
    "range. It holds in a weaker form, which is given in words, if the whole interval lies in the range of that form. "
    "It is refuted if the whole interval lies outside the claimed range, and not in the weaker one; the verdict says "
    "if it crosses an end of that one. Otherwise it is undecided: the interval crosses an end of the range, or there "
    "are too few seeds for an interval. The number of seeds that would decide is then given where it can be computed; "
    "it assumes that further seeds are distributed like those so far. The intervals of medians are exact (order "
    "statistics, from six seeds), those of means Student's, those of shares Clopper and Pearson's. A seed that "
    "diverged counts as the worst. Primary claims, in the paper's own setting, decide a statement of the paper. If "
    "there are several, all must hold: the statement is refuted if one of them is, else undecided if one of them is, "
    "else it holds in a weaker form if one of them does. Claims in other settings do not change the verdict; where "
    "those of a setting together come to another one, and not to undecided, the verdict says so. A theorem is checked "
    "in rational arithmetic, and is not counted with the others."
)


class Weaker(NamedTuple):
    """A weaker form of a claim: the range in which it holds, and its words."""

    range: Range
    words: str


@dataclass(frozen=True)
class Claim:
    """The range in which a statistic must lie for a statement of the paper, or for a sentence of ours.

    Attributes:
        statement: the statement of the paper that it tests, a key of `STATEMENTS`; "" for a question of ours.
        experiment: a name of the catalogue.
        statistic: a name of the statistics that this experiment computes.
        claimed: the range in which the claim holds.
        weaker: its weaker form, if there is one.
        setting: how it differs from what the paper did, such as "on one period"; "" for a primary claim.
        steps: the number of steps in `setting`; settings that differ only in it are listed as a series.
        sentence: the claim, if it is ours; that of the statement otherwise.
    """

    statement: str
    experiment: str
    statistic: str
    claimed: Range
    _: KW_ONLY
    weaker: Weaker | None = None
    setting: str = ""
    steps: int = 0
    sentence: str = ""

    def __post_init__(self) -> None:
        if self.statement and self.statement not in STATEMENTS:
            raise UserError(
                f"a claim of {self.experiment} is about {self.statement!r}, which is not a statement of the paper; "
                'name a key of plunit.lab.claims.STATEMENTS, or "" for a claim of your own'
            )
        if not (self.sentence or self.statement):
            raise UserError(f"the claim on {self.statistic!r} of {self.experiment} needs a sentence")

    @property
    def primary(self) -> bool:
        """Whether it decides a statement of the paper."""
        return bool(self.statement) and not self.setting

    @property
    def said(self) -> str:
        """The sentence that is judged."""
        return self.sentence or STATEMENTS[self.statement].sentence


def _ours(experiment: str, statistic: str, claimed: Range, sentence: str) -> Claim:
    return Claim("", experiment, statistic, claimed, sentence=sentence)


def _set(claims: Iterable[Claim], experiment: str, setting: str) -> tuple[Claim, ...]:
    """Return the same claims on another experiment, which differs from the paper's in its setting."""
    names = ((claim, f"{claim.setting} {setting}".strip()) for claim in claims)
    return tuple(dataclasses.replace(claim, experiment=experiment, setting=words) for claim, words in names)


_HIGHER = Weaker(Range(1, 2), "higher, but less than twice as high")
_TEN_TIMES = Weaker(Range(10, 100), "ten times or more, not a hundred")
_SIMILAR = Range(0.5, 2)
_SINE = (
    Claim("sine-pieces", "sine", "pieces plu/relu", Range(low=1.1)),
    Claim("sine-tanh", "sine", "plu/tanh", _SIMILAR),
    Claim("sine-relu", "sine", "relu/plu", Range(low=100), weaker=_TEN_TIMES),
    Claim("sine-relu", "sine", "relu/tanh", Range(low=100), weaker=_TEN_TIMES),
    Claim("remarks-tanh", "sine", "plu/tanh", _SIMILAR),
)
_CURVE = (
    Claim("curve-five", "parametric", "pieces relu", Range(5, 5)),
    Claim("curve-pieces", "parametric", "pieces plu/relu", Range(low=2)),
    Claim("curve-relu", "parametric", "relu/plu", Range(low=2)),
    Claim("curve-tanh", "parametric", "plu/tanh", Range(low=0.5)),
    Claim("remarks-tanh", "parametric", "plu/tanh", _SIMILAR),
)
# the paper shows the loss of training batches, which are random; that on a grid is closer to the function
_SURFACE = (
    Claim("surface-pieces", "surface", "pieces plu/relu", Range(low=1.1)),
    Claim("surface-tanh", "surface", "train plu/tanh", Range(high=2)),
    Claim("surface-tanh", "surface", "plu/tanh", Range(high=2)),
    Claim("surface-relu", "surface", "train relu/plu", Range(low=2), weaker=_HIGHER),
    Claim("surface-relu", "surface", "relu/plu", Range(low=2), weaker=_HIGHER),
    Claim("remarks-tanh", "surface", "plu/tanh", _SIMILAR),
)
_FITS = {
    "sine": "the sine",
    "parametric": "the parametric curve",
    "parametric-period": "one period of the parametric curve",
    "surface": "the surface",
}


def _dead() -> Iterator[Claim]:
    """Yield ReLU's share of dead units; that on the sine decides."""
    for name, noun in _FITS.items():
        setting = "" if name == "sine" else f"on {noun}"
        yield Claim("dead", name, "dead relu", Range(low=0.01), setting=setting)
    setting = "in the share of networks with a dead unit"
    yield Claim("dead", "sine", "networks with dead relu", Range(low=0.01), setting=setting)


def _cifar() -> Iterator[Claim]:
    """Yield section 5: the paper's 100,000 steps decide, except for the first steps."""

    def series(statement: str, statistic: str, setting: str, steps: Iterable[int], claimed: Range) -> Iterator[Claim]:
        for count in steps:
            name, words = f"{statistic} {count}", setting.format(f"{count:,}")
            yield Claim(statement, "cifar10", name, claimed, setting=words, steps=count)

    higher, lower, early = Range(low=1), Range(high=1), (100, 500, 1000)
    for other in ("plu", "tanh"):
        area, loss = f"area relu/{other}", f"loss relu/{other}"
        after = "in the loss after {} steps"
        yield Claim("cifar-faster", "cifar10", f"{area} 100000", higher)
        yield from series("cifar-faster", area, "over the first {} steps", (5000, 20_000), higher)
        yield from series("cifar-faster", loss, after, (*early, 5000, 20_000, 100_000), higher)
        matched = series("cifar-faster", loss, f"{after} from gain-matched weights", early[:2], higher)
        yield from (dataclasses.replace(claim, experiment="cifar10-gain") for claim in matched)
    yield Claim("cifar-identity", "cifar10", "loss identity/relu 100", lower)
    yield from series("cifar-identity", "loss identity/relu", "after {} steps", early[1:], lower)
    # sections 2 to 4 speak of losses "two orders of magnitude" and "much" higher
    yield Claim("cifar-favourable", "cifar10", "loss relu/plu 100000", Range(high=2))
    yield from series("cifar-favourable", "loss relu/plu", "after {} steps", (1000, 5000, 20_000), Range(high=2))


def _own() -> Iterator[Claim]:
    """Yield our own questions."""
    better, more = Range(low=1.1), Range(low=1.1)
    for name, noun in _FITS.items():
        yield _ours(name, "plu/plu_learned", better, f"On {noun}, learned alpha and c do better than fixed ones.")
        # k kinks cut a line in about k pieces and a plane in k^2, and a unit of PLU has two kinks
        twice, range_ = ("two to four times", Range(2, 4)) if name == "surface" else ("about twice", Range(1.5, 2.5))
        for stage, start in (("initial", "with biases 0"), ("random", "with biases N(0, 1)")):
            sentence = f"Before training, {start}, PLU networks have {twice} as many pieces on the domain of {noun}."
            yield _ours(name, f"{stage} pieces plu/relu", range_, sentence)
        for activation, label in (("relu", "ReLU"), ("plu", "PLU")):
            sentence = f"Training on {noun} gives {label} networks more pieces."
            yield _ours(name, f"pieces {activation} trained/initial", more, sentence)
    low = "can reach a loss ten times as low as"
    yield _ours("reach", "plu/tanh", Range(low=10), f"On the sine, tanh {low} PLU.")
    yield _ours("reach", "relu/plu", Range(low=10), f"On the sine, PLU {low} ReLU.")
    for activation, label in (("tanh", "tanh"), ("relu", "ReLU"), ("plu", "PLU"), ("plu_learned", "learned PLU")):
        sentence = f"On the sine, second-order steps lead {label} to a lower loss than Adam's."
        yield _ours("reach", f"{activation} adam/second-order", better, sentence)
    sentence = "On CIFAR-10, ReLU overtakes PLU in training loss after the first 5,000 steps."
    yield _ours("cifar10", "thousands of steps until relu is below plu", Range(low=5), sentence)
    for steps in (20_000, 100_000):
        sentence = f"On CIFAR-10, PLU's test accuracy after {steps:,} steps is at least ReLU's."
        yield _ours("cifar10", f"accuracy plu - relu {steps}", Range(low=0), sentence)
    for activation, label in (("plu", "PLU"), ("tanh", "tanh")):
        sentence = f"An invertible {label} network of depth 32 returns its input to 0.001 in float32."
        yield _ours("inverse", f"round trip {activation}", Range(high=1e-3), sentence)


_SCALED = "with weights N(0, 1 / inputs)"
_GRADIENTS = (
    Claim("gradients-tanh", "depth", "fall tanh", Range(high=0.01)),
    Claim("gradients-plu", "depth", "fall plu", Range(low=0.1)),
    Claim("gradients-plu", "depth", "fall plu/tanh", Range(low=2), setting="compared with tanh"),
)
_CAPACITY = (
    Claim("intro-many", "capacity", "relu 6x6 / plu 3x3", Range(low=1)),
    Claim("intro-many", "capacity", "relu 4 layers / plu 2 layers", Range(low=1)),
    Claim("remarks-shallow", "capacity", "ratio 2 layers / ratio 8 layers", Range(low=1)),
)
_TENSORFLOW = "with TensorFlow's form of Adam"
_COMPILED = "with the compiled kernel"

CLAIMS: tuple[Claim, ...] = (
    *_CAPACITY,
    *_set(_CAPACITY, "capacity-curve", "on the parametric curve"),
    Claim("sine-floor", "reach", "best relu/plu", Range(low=1)),
    Claim("sine-floor", "reach", "best relu/tanh", Range(low=1)),
    *_SINE,
    *_set(_SINE, "sine-tensorflow", _TENSORFLOW),
    *_CURVE,
    *_set(_CURVE, "parametric-period", "on one period"),
    *_set(_CURVE, "parametric-tensorflow", _TENSORFLOW),
    *_SURFACE,
    *_set(_SURFACE, "surface-tensorflow", _TENSORFLOW),
    *_cifar(),
    *_GRADIENTS,
    *_set(_GRADIENTS, "depth-scaled", _SCALED),
    *_dead(),
    Claim("remarks-cost", "cost", "composite/relu", Range(high=2)),  # the paper had no kernel of its own
    Claim("remarks-cost", "cost", "composite/tanh", Range(high=1)),
    Claim("remarks-cost", "cost", "plu/relu", Range(high=2), setting=_COMPILED),
    Claim("remarks-cost", "cost", "plu/tanh", Range(high=1), setting=_COMPILED),
    Claim("remarks-nonlinear", "frequency", "ratio k=4 / ratio k=1/4", Range(low=1)),
    Claim("remarks-nonlinear", "frequency", "ratio k=1 / ratio k=1/4", Range(low=1), setting="from k = 1/4 to 1"),
    *_own(),
)
"""All claims of the project. Those of other packages are an attribute of their experiments."""


def verdict(claim: Claim, estimate: Estimate) -> str:
    """Return the verdict on a claim by `RULE`."""
    ends = estimate.low, estimate.high
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return UNDECIDED
    if claim.claimed.holds(*ends):
        return HOLDS
    if claim.weaker and claim.weaker.range.holds(*ends):
        return WEAKER
    return REFUTED if estimate.high < claim.claimed.low or estimate.low > claim.claimed.high else UNDECIDED


@dataclass(frozen=True)
class Judged:
    """A claim with its measured statistic.

    Attributes:
        claim: what must be true.
        experiment: where it was measured; a variant has another name.
        words: the statistic in words.
        estimate: its value and interval.
        needed: the number of seeds that would decide an undecided claim; 0 if unknown, or if it is decided.
    """

    claim: Claim
    experiment: str
    words: str
    estimate: Estimate
    needed: int = 0

    @property
    def verdict(self) -> str:
        """The verdict by `RULE`."""
        return verdict(self.claim, self.estimate)

    @property
    def said(self) -> str:
        """The verdict, with the words of a weaker form that holds or may hold, or how many seeds would decide."""
        weaker, estimate = self.claim.weaker, self.estimate
        if weaker and self.verdict == WEAKER:
            return f"{WEAKER}: {weaker.words}"
        if weaker and self.verdict == REFUTED and estimate.low < weaker.range.high and estimate.high > weaker.range.low:
            return f"{REFUTED}; undecided in a weaker form: {weaker.words}"
        return f"{UNDECIDED}; about {self.needed:,} seeds would decide" if self.needed else self.verdict


def judge(experiments: Mapping[str, Experiment], results: Results) -> list[Judged]:
    """Return all claims that the results can judge, in the order of the experiments, then of `CLAIMS`.

    A variant is not what the paper did: its claims are ours.
    """
    found = []
    for name, runs in results.items():
        one = experiments[name]
        statistics = {statistic.name: statistic for statistic in one.statistics(runs)}
        for claim in claims_of(one):
            if claim.statistic in statistics:
                _, words, estimate = statistics[claim.statistic]
                needed = seeds_needed(estimate, claim.claimed) if verdict(claim, estimate) == UNDECIDED else 0
                found.append(Judged(_varied(claim, one.variant), name, words, estimate, needed))
            elif claim in one.claims and runs.keys() >= {*one.activations}:
                known = ", ".join(statistics) or "none"
                raise UserError(
                    f"{name} does not compute the statistic {claim.statistic!r} of its claim; it has {known}"
                )
    return found


def claims_of(experiment: Experiment) -> list[Claim]:
    """Return the claims on an experiment, or on the one that it is a variant of."""
    base = experiment.name.partition("+")[0]
    return [*(claim for claim in CLAIMS if claim.experiment == base), *experiment.claims]


def _varied(claim: Claim, variant: str) -> Claim:
    if not variant:
        return claim
    told = ", ".join(filter(None, (claim.setting, variant)))
    return dataclasses.replace(claim, statement="", setting="", sentence=f"{claim.said.removesuffix('.')} ({told}).")


@dataclass(frozen=True)
class Ruling:
    """A statement of the paper, its claims, the primary ones first, and the verdict; without claims, a theorem's."""

    key: str
    claims: tuple[Judged, ...]
    verdict: str

    @property
    def section(self) -> str:
        """The section where the statement stands."""
        return STATEMENTS[self.key].section

    @property
    def sentence(self) -> str:
        """The statement."""
        return STATEMENTS[self.key].sentence

    @property
    def theorem(self) -> bool:
        """Whether it is checked rather than measured."""
        return STATEMENTS[self.key].theorem

    @property
    def primary(self) -> list[Judged]:
        """The claims that decide."""
        return [one for one in self.claims if one.claim.primary]

    @property
    def deciding(self) -> Judged | None:
        """The primary claim that decides, the one that needs most seeds if several are undecided; None if not run."""
        own = [one for one in self.primary if one.verdict == self.verdict]
        return max(own, key=lambda one: one.needed or math.inf, default=None)

    @property
    def said(self) -> str:
        """The verdict and, after a "but", the settings in which other claims come to another one."""
        missing = "" if self.theorem else "; not all claims that decide were run"
        own = self.deciding.said if self.deciding else f"{self.verdict}{missing}"
        others = _list_settings(self.key, self.claims)
        differ = (other for other in (HOLDS, WEAKER, REFUTED) if other in others and other != self.verdict)
        parts = [f"{other} {_and(others[other])}" for other in differ]
        return own + (f", but {', and '.join(parts)}" if parts else "")

    def words(self, one: Judged) -> str:
        """Return the statistic of a claim in words, with its experiment if the claims that decide are of several."""
        several = len({each.experiment for each in self.primary}) > 1
        return f"{one.words} ({one.experiment})" if several else one.words


def _list_settings(key: str, claims: Iterable[Judged]) -> dict[str, list[str]]:
    """Return verdict to the settings in which all claims on a statement together come to it.

    Settings that differ only in the number of steps are listed together: "after 100 to 1,000 steps".
    """
    groups: dict[str, list[Judged]] = {}
    for one in claims:
        groups.setdefault(one.claim.setting, []).append(one)
    groups.pop("", None)  # the primary claims
    series: dict[str, list[tuple[int, str]]] = {}
    for setting, group in groups.items():
        steps = group[0].claim.steps
        words = setting.replace(f"{steps:,}", "{}") if steps else setting
        series.setdefault(words, []).append((steps, _worst(key, setting, group)))
    found: dict[str, list[str]] = {}
    for words, places in series.items():
        runs: dict[str, list[str]] = {}
        for said, run in itertools.groupby(sorted(places), key=lambda place: place[1]):
            first, *others = [f"{steps:,}" for steps, _ in run]
            runs.setdefault(said, []).append(
                f"{first} {'to' if others[1:] else 'and'} {others[-1]}" if others else first
            )
        for said, numbers in runs.items():
            found.setdefault(said, []).append(words.replace("{}", _and(numbers)))
    return found


def _and(texts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def answers(judged: Iterable[Judged]) -> list[Ruling]:
    """Return the verdicts on the paper's statements that have claims here, and on its theorems, in its order."""
    groups: dict[str, list[Judged]] = {key: [] for key in STATEMENTS}
    for one in sorted(judged, key=lambda one: not one.claim.primary):
        if one.claim.statement:
            groups[one.claim.statement].append(one)
    if not any(groups.values()):
        return []
    measured = {key: tuple(group) for key, group in groups.items() if group or STATEMENTS[key].theorem}
    return [Ruling(key, group, _decide(key, group)) for key, group in measured.items()]


def _decide(key: str, group: tuple[Judged, ...]) -> str:
    """Return the verdict on a statement: that of its primary claims, or of the checks of a theorem."""
    if STATEMENTS[key].theorem:
        return CHECKED if all(THEOREMS[key]()) else REFUTED
    return _worst(key, "", [one for one in group if one.claim.primary])


def _worst(key: str, setting: str, group: list[Judged]) -> str:
    """Return the worst verdict of the claims on a statement in one setting, all of which must be there."""
    found = [one.verdict for one in group]
    whole = len(found) >= sum((claim.statement, claim.setting) == (key, setting) for claim in CLAIMS)
    order = (REFUTED, UNDECIDED, WEAKER, HOLDS)
    return min([*found, *([] if whole else [UNDECIDED])], key=order.index)


def tally(found: Iterable[Ruling]) -> str:
    """Count the verdicts on the paper's statements: "3 hold, 1 is refuted; 7 of 7 theorems checked"."""
    found = list(found)
    count = Counter(one.verdict for one in found if not one.theorem)
    many = {HOLDS: "hold", WEAKER: "hold in a weaker form", REFUTED: "are refuted", UNDECIDED: "are undecided"}
    single = {**dict(zip(VERDICTS, VERDICTS, strict=True)), REFUTED: "is refuted", UNDECIDED: "is undecided"}
    parts = [f"{n} {(single if n == 1 else many)[key]}" for key in VERDICTS if (n := count[key])]
    theorems = [one.verdict for one in found if one.theorem]
    checked = f"{theorems.count(CHECKED)} of {len(theorems)} theorems checked" if theorems else ""
    return "; ".join(part for part in (", ".join(parts), checked) if part)
