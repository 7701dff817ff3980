"""Graphs that jump where rounded constants do not meet: refused, or read with a bound that fractions confirm."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from onnx_texts import graph, make, onnx, write

from plunit.pieces import JumpWarning, load

SINGLE, DOUBLE = np.float32, np.float64
KINDS = {SINGLE: onnx.TensorProto.FLOAT, DOUBLE: onnx.TensorProto.DOUBLE}
TWO_LINES = "m = Greater(x, t); p = Mul(x, a); q = Add(p, b); y = Where(m, q, x)"
PLU = (
    "k{0} = Abs({0}); m{0} = Greater(k{0}, c); p{0} = Mul({0}, a); s{0} = Sign({0}); d{0} = Mul(s{0}, b); "
    "q{0} = Add(p{0}, d{0}); {1} = Where(m{0}, q{0}, {0})"
)

EXACT = {
    "Abs": abs,
    "Neg": lambda a: -a,
    "Relu": lambda a: max(a, Fraction(0)),
    "Sign": lambda a: Fraction((a > 0) - (a < 0)),
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Max": max,
    "Min": min,
    "Clip": lambda a, low, high: min(max(a, low), high),
    "Greater": lambda a, b: a > b,
    "LessOrEqual": lambda a, b: a <= b,
    "Where": lambda mask, a, b: a if mask else b,
}


def exact(nodes, arrays, x):
    """Return y for a number x, and the largest intermediate number, in fractions."""
    values = {"x": Fraction(float(x)), **{name: Fraction(float(array)) for name, array in arrays.items()}}
    for node in nodes:
        values[node.output[0]] = EXACT[node.op_type](*(values[name] for name in node.input))
    return values["y"], max(abs(value) for value in values.values())


def read(path):
    """Return a network and its bound, 0 if `load` does not warn of one."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", JumpWarning)
        net = load(path)
    return net, found[0].message.bound if found else np.zeros(net.outputs)


def steps(number, count, kind=SINGLE):
    """Return the number of a type that is `steps` steps above another."""
    return kind(number + count * float(np.spacing(kind(number))))


@pytest.mark.parametrize(("t", "a", "b"), [(1, 0.5, 0.5), (1000, 0.5, 500), (1, 0.1, 0.9), (-3.7, 2.5, 5.55)])
@pytest.mark.parametrize("count", [3, -3, 20], ids=lambda count: f"{count} steps")
def test_pieces_that_do_not_meet_are_refused(t, a, b, count, tmp_path):
    arrays = {"t": SINGLE(t), "a": SINGLE(a), "b": steps(b, count)}
    with pytest.raises(ValueError, match="jumps by"):
        load(write(tmp_path / "model", graph(TWO_LINES), arrays, ("n", 1)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", range(5))
def test_a_jump_that_rounding_one_constant_explains_has_a_bound(seed, scale, tmp_path):
    rng = np.random.default_rng(seed)
    t, a = SINGLE(scale * rng.normal()), SINGLE(rng.normal())
    arrays = {"t": t, "a": a, "b": SINGLE((1 - float(a)) * float(t))}
    nodes = graph(TWO_LINES)
    net, (bound,) = read(write(tmp_path / "model", nodes, arrays, ("n", 1)))
    points = [0.0, float(t), np.nextafter(float(t), np.inf), -5 * scale, 5 * scale, 0.3 * scale]
    found = [abs(Fraction(net([x])[0]) - exact(nodes, arrays, x)[0]) for x in points]
    # the bound is the jump, and is reached on one side
    assert 0.99 * bound <= float(max(found)) <= bound + 1e-12 * scale
    assert 0 < bound <= 0.501 * np.spacing(arrays["b"] * np.sign(arrays["b"]))


def test_bounds_go_through_the_layers(tmp_path):
    arrays = {"a": SINGLE(0.1), "b": SINGLE(0.9), "c": SINGLE(1.0), "v": SINGLE(-3.3), "w": SINGLE(70.0)}
    first, second = PLU.format("x", "u"), PLU.format("z", "f")
    nodes = graph(f"{first}; g = Neg(u); z = Mul(u, w); {second}; h = Mul(f, v); y = Sub(h, g)")
    matrices = [make.make_node("MatMul", ["u", "w"], ["z"]) if node.output[0] == "z" else node for node in nodes]
    path = write(tmp_path / "model", matrices, {**arrays, "w": np.array([[70.0]], SINGLE)}, (1, 1))
    net, (bound,) = read(path)
    assert len(net.hidden) == 2
    points = (-50.0, -1.5, -1.0, 0.005, 1.0, 1.0001, 3.0, 40.0)
    found = [abs(Fraction(net([x])[0]) - exact(nodes, arrays, x)[0]) for x in points]
    jump = float(abs(1 - Fraction(float(SINGLE(0.1))) - Fraction(float(SINGLE(0.9)))))
    assert bound == pytest.approx(3.3 * (70 * jump + jump) + jump, rel=1e-5)
    assert 0 < max(found) <= bound + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_is_that_of_the_numbers_of_the_graph(kind, tmp_path):
    arrays = {name: kind(number) for name, number in (("a", 0.1), ("b", 0.9), ("c", 1.0))}
    nodes = graph(PLU.format("x", "y"))
    _, (bound,) = read(write(tmp_path / "model", nodes, arrays, ("n", 1), kind=KINDS[kind]))
    assert (bound > 0) == (kind is SINGLE)
    if kind is DOUBLE:
        arrays["b"] = DOUBLE(SINGLE(0.9))
        with pytest.raises(ValueError, match="jumps by"):
            load(write(tmp_path / "model", nodes, arrays, ("n", 1), kind=KINDS[kind]))


def test_a_warning_that_is_an_error_refuses_the_file(tmp_path):
    arrays = {"a": SINGLE(0.1), "b": SINGLE(0.9), "c": SINGLE(1.0)}
    path = write(tmp_path / "model", graph(PLU.format("x", "y")), arrays, ("n", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(JumpWarning, match="differ by at most"):
            load(path)


@pytest.mark.parametrize(("a", "b"), [(-0.7, 0.6), *np.random.default_rng(0).normal(size=(20, 2))])
def test_products_that_underflow_at_a_kink_are_not_jumps(a, b, tmp_path):
    a, b = SINGLE(a), SINGLE(b)
    arrays = {"a": a, "b": b, "v": np.eye(3, dtype=SINGLE)}
    net = load(write(tmp_path / "model", graph("z = MatMul(x, v); h = Mul(z, a); r = Relu(h); y = Mul(r, b)"), arrays))
    x = np.array([0.5, 0.0, -2.0])
    np.testing.assert_allclose(net(x), b.astype(float) * np.maximum(a.astype(float) * x, 0.0), rtol=1e-14)


def random_nodes(rng):
    """Return a graph of numbers of any size, most of which are continuous."""
    sizes = 10.0 ** rng.integers(-3, 4, size=6)
    arrays = {f"c{i}": SINGLE(size * rng.normal()) for i, size in enumerate(sizes)} | {"zero": SINGLE(0)}
    names, nodes = ["x"], []

    def add(kind, *inputs):
        nodes.append(make.make_node(kind, inputs, [f"n{len(nodes)}"]))
        return nodes[-1].output[0]

    def number(share=0.0):
        return str(rng.choice([*arrays] if rng.random() < share else names))

    for _ in range(int(rng.integers(2, 8))):
        kind = str(rng.choice(["Abs", "Neg", "Relu", "Sign", "Add", "Sub", "Max", "Min", "Mul", "Clip", "Where"]))
        if kind in ("Abs", "Neg", "Relu", "Sign"):
            names.append(add(kind, number()))
        elif kind == "Mul":
            names.append(add(kind, number(), number(1.0)))
        elif kind == "Clip":
            names.append(add(kind, number(), *sorted(rng.choice([*arrays], 2).tolist(), key=lambda name: arrays[name])))
        elif kind == "Where":
            mask = add(str(rng.choice(["Greater", "LessOrEqual"])), number(), number(0.5))
            names.append(add(kind, mask, number(), number(0.3)))
        else:
            names.append(add(kind, number(), number(0.5)))
    nodes.append(make.make_node("Add", [names[-1], number(0.5)], ["y"]))
    return nodes, arrays


@pytest.mark.parametrize("seed", range(3))
def test_what_is_accepted_is_the_function_in_fractions(seed, tmp_path):
    rng = np.random.default_rng(seed)
    accepted = 0
    for _ in range(60):
        nodes, arrays = random_nodes(rng)
        try:
            net, (bound,) = read(write(tmp_path / "model", nodes, arrays, ("n", 1)))
        except ValueError:
            continue
        accepted += 1
        knots = [float(knot) for _, f in net.hidden for knot in np.ravel(f.knots) if np.isfinite(knot)]
        sides = [float(np.nextafter(knot, end)) for knot in knots for end in (-np.inf, np.inf)]
        for x in (0.0, 0.7, -40.0, 5e4, *knots, *sides, *map(float, arrays.values())):
            wanted, size = exact(nodes, arrays, x)
            assert abs(Fraction(net([x])[0]) - wanted) <= Fraction(bound) + Fraction(1e-12) * size + Fraction(1e-300)
    assert accepted > 30
