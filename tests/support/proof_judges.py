"""Are proofs about a random network right? Rational arithmetic decides.

Wrong is a bound that an exact value is beyond, "proved" of what is false, "refuted" of what is true, a value that the
network does not have, and "proved" where value and bound are apart. Undecided is not wrong.
"""

from fractions import Fraction

import numpy as np
import rational_networks
from random_networks import mixture, random_network, scaled_network

from plunit.pieces import Undecided, activation, is_monotone, lipschitz, maximum, minimum, network
from plunit.pieces.float_errors import rounding_bound
from plunit.pieces.proofs.properties import Property
from plunit.pieces.proofs.verdicts import holds

SECONDS = 2.0


def judge_proofs(seed):
    """Return "right", "refused: ..." or "wrong: ..." for maximum, minimum and holds, of one network."""
    net, box, constraints = question(seed)
    try:
        exact = rational_networks.extremes(net, box, constraints)
        return _values(net, box, constraints, exact) or _verdicts(seed, net, box, constraints, exact) or "right"
    except ValueError as error:
        return f"refused: {error}"


def judge_slopes(seed):
    """Return "right", "refused: ..." or "wrong: ..." for lipschitz and is_monotone, of one network."""
    net, box, _ = question(seed)
    if any(low == high for low, high in box):
        return "refused: a fixed input"
    gradients = rational_networks.steepest(net, box)
    try:
        return _lipschitz(net, box, gradients) or _monotone(net, box, [one[0][0] for one in gradients]) or "right"
    except ValueError as error:
        return f"refused: {error}"


def question(seed):
    """Return a network of one or two inputs, its box and constraints or None; odd seeds are adversarial."""
    rng = np.random.default_rng([seed, 7])
    inputs = int(rng.integers(1, 3))
    if seed % 2 == 0:
        net = (random_network if seed % 4 else scaled_network)(seed, inputs, 4, 2)
    else:
        net = ADVERSARIES[int(rng.integers(len(ADVERSARIES)))](rng, inputs)
    box = [tuple(sorted(map(float, rng.integers(-3, 4, 2) + 0.5 * rng.integers(0, 2)))) for _ in range(inputs)]
    if rng.random() < 0.2:
        scale = float(rng.choice([1e-150, 1e-20, 1e-9, 1e9, 1e20, 1e140]))
        box = [(low * scale, high * scale) for low, high in box]
    constraints = None
    if inputs == 2 and rng.random() < 0.3:
        rows = rng.integers(-2, 3, (2, 2)).astype(float) * float(rng.choice([1.0, 0.1, 1e-12, 1e12]))
        middle = rng.uniform(*np.transpose(box))
        constraints = rows, rows @ middle + np.abs(rows) @ np.abs(middle) * 1e-12
    return net, box, constraints


def _powers(rng, inputs):
    """Rows times 2**k, k from -40 to 40."""
    units, layers, before = int(rng.integers(1, 5)), [], inputs
    for _ in range(int(rng.integers(1, 3))):
        scale = 2.0 ** rng.integers(-40, 41, units)
        weight, bias = rng.normal(size=(units, before)) * scale[:, None], rng.normal(size=units) * scale
        layers += [(weight, bias), mixture(rng, units)]
        before = units
    return network(
        [*layers, (rng.normal(size=(1, before)) * 2.0 ** rng.integers(-40, 41, before), [float(rng.normal())])]
    )


def _cancelling(rng, inputs):
    """Large terms of both signs, whose sum is small: the same unit twice, almost."""
    weight, bias = rng.normal(size=(2, inputs)), rng.normal(size=2)
    rows, f = np.repeat(weight, 2, axis=0), activation.plu() if rng.random() < 0.5 else activation.relu()
    if rng.random() < 0.5:
        rows[1::2] = np.nextafter(rows[1::2], 9)
    large = float(rng.choice([1.0, 1e8, 1e16, 1e100])) * rng.normal(size=2)
    last = np.stack([large, -large], axis=1).reshape(1, -1)
    return network([(rows, np.repeat(bias, 2)), f, (last, [float(rng.choice([0.0, 1.0, 1e-17]))])])


def _knotted(rng, inputs):
    """Units with many knots, some of them equal, adjacent or at whole numbers, where corners of the box are."""
    units = int(rng.integers(1, 4))
    knots = np.sort(rng.choice([-2.0, -1.0, 0.0, 1.0, 1.0 + 2.0**-52, 1.5, 2.0], (units, 4)), axis=1)
    f = activation.piecewise(list(knots.T), list(rng.integers(-2, 3, (5, units)).astype(float)), rng.normal(size=units))
    weight = rng.integers(-1, 2, (units, inputs)).astype(float)
    return network([(weight, rng.integers(-1, 2, units).astype(float)), f, (rng.normal(size=(1, units)), [0.0])])


def _decimal(rng, inputs):
    """Tenths, whose sums round: kinks lie beside corners of the box."""
    units = int(rng.integers(1, 5))
    weight, bias = rng.integers(-9, 10, (units, inputs)) / 10, rng.integers(-9, 10, units) / 10
    last = rng.integers(-9, 10, (1, units)) / 10
    return network([(weight, bias), [activation.relu(), activation.absolute()][int(rng.integers(2))], (last, [0.1])])


def _tiny(rng, inputs):
    """Numbers near the ends of double precision."""
    scale = float(rng.choice([1e-300, 1e-160, 1e-100, 1e100, 1e140]))
    weight = rng.normal(size=(2, inputs)) * scale
    return network([(weight, rng.normal(size=2) * scale), mixture(rng, 2), (rng.normal(size=(1, 2)), [0.0])])


ADVERSARIES = [
    _powers,
    _cancelling,
    _knotted,
    _decimal,
    _tiny,
    lambda rng, inputs: scaled_network(2 * int(rng.integers(1e6)) + 1, inputs, 3, 2),
    lambda rng, inputs: network([(rng.normal(size=(2, inputs)), rng.normal(size=2))]),
]


def _values(net, box, constraints, exact):
    for output, (low, high) in enumerate(exact):
        size = max(abs(low), abs(high))
        for find, sign, best in ((maximum, 1, high), (minimum, -1, -low)):
            found = find(net, box, output=output, constraints=constraints, time_limit=SECONDS)
            known = np.isfinite(found.value) and (np.isfinite(found.bound) or found.seconds >= SECONDS)
            if constraints is None and not known:
                return f"wrong: {find.__name__}[{output}] is {found}"
            if np.isfinite(found.bound) and sign * Fraction(float(found.bound)) < best:
                return (
                    f"wrong: {find.__name__}[{output}] has bound {found.bound!r}, but {float(sign * best)!r} is reached"
                )
            if found.value == -sign * np.inf:  # no point of a flat domain is a number of double precision
                continue
            error = Fraction(float(rounding_bound(net, np.stack([found.x, found.x], axis=1))[output]))
            if constraints is None and sign * Fraction(found.value) > best + error:
                return f"wrong: {find.__name__}[{output}] = {found.value!r} is beyond {float(sign * best)!r}"
            if not np.isfinite(found.bound):  # time was over before the first bound
                continue
            gap = sign * (Fraction(float(found.bound)) - Fraction(found.value))
            if found.proved and gap > Fraction(1e-300) + Fraction(1.001e-6) * (size + error):
                return f"wrong: {find.__name__}[{output}] is proved from {found.value!r} to {found.bound!r}"
    return None


def _verdicts(seed, net, box, constraints, exact):
    (low, high), out = exact[0], np.eye(net.outputs)[:1]
    near = float(high)
    limits = [near, float(np.nextafter(near, np.inf)), float(np.nextafter(near, -np.inf)), near + 1e-3 * abs(near)]
    limits += [near - 1e-3 * abs(near), float((low + high) / 2)]
    limit = limits[seed // 2 % len(limits)]
    for name, always, truth in [
        ("f <= limit", Property.always(box, out, [limit], constraints), high <= Fraction(limit)),
        ("never f >= limit", Property.never(box, [(-out, [-limit])], constraints), high < Fraction(limit)),
    ]:
        status = holds(net, always, time_limit=SECONDS).status
        if status == ("refuted" if truth else "proved"):
            return f"wrong: {name} of {limit!r} is {status}, the maximum {near!r} + {float(high - Fraction(near)):.3g}"
        size = Fraction(1e-6) * max(abs(low), abs(high)) + Fraction(1e-12) * _terms(net, box) + Fraction(1e-290)
        clear = abs(high - Fraction(limit)) > size
        if status == "undecided" and clear and seed % 2 == 0 and constraints is None:
            return f"wrong: {name} of {limit!r} is undecided, the maximum is {near!r}"
    return None


def _terms(net, box):
    """Return a bound of all terms of the sums, by which rounding errors are measured."""
    size = np.abs(box).max(axis=1)
    for layer in net.layers:
        size = np.abs(layer.weight) @ size + np.abs(layer.bias)
        if layer.activation is not None:
            size = np.abs(layer.activation.slopes).max(axis=-1) * size + np.abs(layer.activation.at_zero)
    return Fraction(float(size.max()))


def _lipschitz(net, box, gradients):
    for norm in (1, 2, np.inf):
        found = lipschitz(net, box, norm=norm, time_limit=SECONDS)
        sizes = [_dual(norm, gradient) for row in gradients for gradient in row]
        power = 2 if norm == 2 else 1
        if np.isfinite(found.bound) and Fraction(float(found.bound)) ** power < max(sizes):
            return f"wrong: the {norm}-norm has bound {found.bound!r}, but reaches {float(max(sizes)) ** (1 / power)!r}"
        reached = max(found.value * (1 - 1e-9) - 1e-12 * _paths(net), 0.0)
        if Fraction(reached) ** power > max(sizes):
            return f"wrong: the {norm}-norm {found.value!r} is not reached, {float(max(sizes)) ** (1 / power)!r} is"
    return None


def _paths(net):
    """Return a bound of the sum of |w_n f' ... w_1| over all paths: rounding errors of slopes are measured by it."""
    size = np.ones(net.inputs)
    for layer in net.layers:
        size = np.abs(layer.weight) @ size
        size = size * (1.0 if layer.activation is None else np.abs(layer.activation.slopes).max(axis=-1))
    return float(size.sum())


def _dual(norm, gradient):
    if norm == 2:
        return sum(part * part for part in gradient)
    return max(map(abs, gradient)) if norm == 1 else sum(map(abs, gradient))


def _monotone(net, box, slopes):
    for increasing, wrong in ((True, -min(slopes)), (False, max(slopes))):
        try:
            answer = is_monotone(net, 0, box, increasing=increasing, time_limit=SECONDS)
        except Undecided:
            continue
        if answer and wrong > Fraction(1.001e-6) * max(map(abs, slopes)):
            return f"wrong: monotone (increasing={increasing}), but a slope is {float(wrong):.3g}"
        if not answer and wrong <= 0:
            return f"wrong: not monotone (increasing={increasing}), but no slope is on the wrong side"
    return None
