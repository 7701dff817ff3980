"""Networks and curves as ONNX models: onnxruntime and OMLT find the same values, and networks come back."""

import numpy as np
import pytest
from random_networks import dense_network, mixture, random_network, scaled_network

from plunit.pieces import Curve, activation, curve, ensemble, load, network, polygons, save_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(scale=4.0, size=(200, 2)), RNG.integers(-3, 4, size=(50, 2))])


def run(net, path, x=X, **options):
    save_onnx(net, path, **options)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.asarray(x, dtype=options.get("dtype", "float64"))})[0]


def operators(path):
    return [node.op_type for node in onnx.load(path).graph.node]


def of_kinds(seed):
    """One hidden layer whose units have different activations."""
    rng = np.random.default_rng(seed)
    return network(
        [(rng.normal(size=(6, 2)), rng.normal(size=6)), mixture(rng, 6), (rng.normal(size=(2, 6)), [0.5, 1])]
    )


@pytest.mark.parametrize("net", [*(random_network(seed, 2, 6, 3, 2) for seed in range(24)), *map(of_kinds, range(12))])
def test_the_model_is_the_network(net, tmp_path):
    double, single = (run(net, tmp_path / f"{kind}.onnx", dtype=kind) for kind in ("float64", "float32"))
    assert (double.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(double, net(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(single, net(X), rtol=1e-4, atol=2e-5 * np.abs(net(X)).max())
    np.testing.assert_allclose(load(tmp_path / "float64.onnx")(X), net(X), rtol=1e-13, atol=1e-13)


UNITS = {
    "plu": (activation.plu(0.1, 0.7), ["Clip", "Sub", "Mul", "Add"]),
    "plu, alpha = 0": (activation.plu(0.0, 0.7), ["Clip"]),
    "plu, learned for each unit": (activation.plu([0.1, 0.2], [0.7, 0.9]), ["Max", "Min", "Sub", "Mul", "Add"]),
    "relu": (activation.relu(), ["Relu"]),
    "leaky relu": (activation.leaky_relu(0.1), ["PRelu"]),
    "a slope for each unit": (activation.leaky_relu([0.1, 0.2]), ["PRelu"]),
    "hardtanh": (activation.hardtanh(-1, 2), ["Clip"]),
    "relu6": (activation.relu6(), ["Clip"]),
    "hardsigmoid": (activation.hardsigmoid(), ["Clip", "Mul", "Add"]),
    "absolute": (activation.absolute(), ["PRelu"]),
    "four pieces": (activation.piecewise([-1, 0.3, 2], [1, 0, 3, -1], 0.5), None),
    "shifted": (activation.hardtanh(1, 2), None),
    "outer slopes that differ": (activation.piecewise([-1, 1], [0.1, 1, 0.3]), None),
    "another value at 0": (activation.piecewise([-1, 1], [0.1, 1, 0.1], 0.5), None),
}


@pytest.mark.parametrize("name", UNITS)
def test_an_activation_is_exact_at_its_kinks_and_comes_back(name, tmp_path):
    f, expected = UNITS[name]
    net = network([(np.eye(2), [0, 0]), f, (np.eye(2), [0, 0])])
    kinks = np.unique(f.knots[np.isfinite(f.knots)])
    near = np.concatenate([kinks, np.nextafter(kinks, 9), np.nextafter(kinks, -9), [-3, 0, 5]])
    x = np.stack([near, near], axis=1)
    y = run(net, tmp_path / "net.onnx", x)
    np.testing.assert_allclose(y, net(x), rtol=4e-16, atol=2e-16)
    if expected is not None:
        assert operators(tmp_path / "net.onnx") == ["Gemm", *expected, "Gemm"]
    ((_, found),), ((_, given),) = load(tmp_path / "net.onnx").hidden, net.hidden
    np.testing.assert_array_equal(found.knots, given.knots)
    np.testing.assert_array_equal(found.slopes, given.slopes)
    np.testing.assert_allclose(found.at_zero, given.at_zero, rtol=1e-15)


@pytest.mark.parametrize("seed", range(1, 40, 2))
def test_wild_scales(seed, tmp_path):
    net = scaled_network(seed, 2, 5, 3)
    y = run(net, tmp_path / "net.onnx")
    # differences in the order of sums, times the weights after them
    size = np.abs(X)
    for layer in net.layers:
        f, size = layer.activation, size @ np.abs(layer.weight).T + np.abs(layer.bias)
        size = size if f is None else size * np.abs(f.slopes).max(axis=1) + np.abs(f.at_zero)
    assert (np.abs(y - net(X)) <= 1e-14 * size).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_relu_alone(dtype, tmp_path):
    net = random_network(4, 2, 6, 3, 2)
    y = run(net, tmp_path / "net.onnx", dtype=dtype, relu=True)
    assert set(operators(tmp_path / "net.onnx")) == {"Gemm", "Relu"}
    np.testing.assert_allclose(y, net(X), rtol=1e-4, atol=1e-3 if dtype == "float32" else 1e-11)


def test_bad_options(tmp_path):
    net = network([([[1e300]], [0.0])])
    with pytest.raises(ValueError, match=r"numbers up to 1\.0e\+300 do not fit float32; use dtype='float64'"):
        save_onnx(net, tmp_path / "net", dtype="float32")
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got 'float16'"):
        save_onnx(net, tmp_path / "net", dtype="float16")
    with pytest.raises(ValueError, match="needs a network, got a curve; save the network"):
        save_onnx(curve(network([([[1.0]], [0.0])]), 0, 1), tmp_path / "net", relu=True)
    with pytest.raises(TypeError, match="pick one with"):
        save_onnx(ensemble([(np.ones((1, 1, 2)), np.ones((1, 2)))]), tmp_path / "net")
    with pytest.raises(TypeError, match=r"needs a plunit\.pieces\.Network"):
        save_onnx("text", tmp_path / "net")
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("relu", [False, True])
def test_knots_that_become_one_number_are_refused(relu, tmp_path):
    f = activation.piecewise([1.0, 1 + 1e-9], [0.0, 1e9, 0.0])
    step = network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])])
    with pytest.raises(ValueError, match=r"two knots near 1.0 round to one number in float32; use double"):
        save_onnx(step, tmp_path / "step.onnx", dtype="float32", relu=relu)
    save_onnx(step, tmp_path / "step.onnx", relu=relu)
    assert load(tmp_path / "step.onnx")([2.0])[0] == pytest.approx(1.0, abs=1e-6)


def test_knots_of_a_curve_that_become_one_number_are_refused(tmp_path):
    step = Curve([0, 1000, 1000 + 1e-5, 2000], [[0], [0], [1], [1]], [[0], [1 / ((1000 + 1e-5) - 1000)], [0]])
    with pytest.raises(ValueError, match=r"two knots near 1000.0 round to one number in float32"):
        save_onnx(step, tmp_path / "step.onnx", dtype="float32")
    assert not (tmp_path / "step.onnx").exists()
    found = run(step, tmp_path / "step.onnx", [[999.0], [1000.0], [1001.0]])
    np.testing.assert_allclose(found, [[0], [0], [1]], atol=1e-9)


def test_a_knot_far_away_costs_no_digits(tmp_path):
    f = activation.piecewise([-1e300, 1e300], [1.0, 2, 3], 1.0)
    save_onnx(network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])]), tmp_path / "far.onnx")
    net = load(tmp_path / "far.onnx")
    assert net([1.0]).tolist() == [3.0]
    np.testing.assert_allclose(net([[-3e300], [3e300]]).ravel(), [-4e300, 8e300], rtol=1e-12)


@pytest.mark.parametrize(("seed", "outputs"), [(0, 1), (4, 2), (12, 3), (1, 1)])
@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 1e-4)])
def test_the_model_is_the_curve(seed, outputs, dtype, error, tmp_path):
    net = random_network(seed, 1, 8, 3, outputs)
    found = curve(net, -3.0, 3.0)
    x = np.concatenate([np.linspace(-3, 3, 501), found.knots])[:, None]
    y = run(found, tmp_path / "curve.onnx", x, dtype=dtype)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, net(x), rtol=error, atol=error * max(1, np.abs(net(x)).max()))


STEP = network([([[1e13]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])])
LINE = network([([[2.0]], [1.0]), activation.plu(1.0), ([[3.0]], [0.0])])


@pytest.mark.parametrize(
    ("net", "end", "x", "y"),
    [
        (LINE, 1.0, [-5.0, 0.0, 7.0], [-27.0, 3.0, 45.0]),
        (
            network([([[1.0]], [0.0]), activation.plu()]),
            2.0,
            [0.5, np.inf, -np.inf, np.nan, 2.0],
            [0.5, np.inf, -np.inf, np.nan, 1.1],
        ),
        (STEP, 3.0, [-3.0, 0.2, 0.4, 3.0], [-1, -1, 1, 1]),
    ],
    ids=["one piece, beyond its ends", "infinite numbers do not hurt others", "a steep step"],
)
def test_curves_with_known_values(net, end, x, y, tmp_path):
    found = run(curve(net, -end, end), tmp_path / "curve.onnx", np.array(x)[:, None])
    np.testing.assert_allclose(found.ravel(), y, rtol=1e-14)


def test_dead_kinks_are_left_out(tmp_path):
    save_onnx(curve(network([([[1.0]], [0.0]), activation.plu(1.0)]), -2.0, 2.0), tmp_path / "f.onnx")
    tables = {table.name: list(table.dims) for table in onnx.load(str(tmp_path / "f.onnx")).graph.initializer}
    assert tables["slopes"] == [1, 1]


BOX = ((-2.0, 2.0), (-2.0, 2.0))


def test_omlt_finds_the_same_maximum(tmp_path):
    """The exact one is at the corner of a polygon, because the network is linear on each."""
    pyomo, omlt = pytest.importorskip("pyomo.environ"), pytest.importorskip("omlt")
    pytest.importorskip("highspy")
    from omlt.io import load_onnx_neural_network
    from omlt.neuralnet import ReluBigMFormulation

    net = dense_network(1, 2, 8, 8, 1)
    highest = polygons(net, BOX).values.max()
    save_onnx(net, tmp_path / "net.onnx", relu=True)
    definition = load_onnx_neural_network(onnx.load(tmp_path / "net.onnx"), input_bounds=dict(enumerate(BOX)))
    model = pyomo.ConcreteModel()
    model.net = omlt.OmltBlock()
    model.net.build_formulation(ReluBigMFormulation(definition))
    model.largest = pyomo.Objective(expr=model.net.outputs[0], sense=pyomo.maximize)
    solver = pyomo.SolverFactory("appsi_highs")
    solver.highs_options = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
    solver.solve(model)
    x = np.array([pyomo.value(model.net.inputs[i]) for i in range(2)])
    assert pyomo.value(model.largest) == pytest.approx(highest, abs=1e-6)
    assert net(x).item() == pytest.approx(highest, abs=1e-6)
