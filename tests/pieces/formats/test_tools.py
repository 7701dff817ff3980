"""A trained network in tools that know only ReLU: OMLT with HiGHS finds its maximum, emlearn runs it in C."""

import shutil
import warnings

import numpy as np
import pytest

from plunit.pieces import cells, save_onnx, to_sklearn

BOX = ((-2.0, 2.0), (-2.0, 2.0))


@pytest.fixture(scope="module")
def trained():
    """A network of two inputs with PLU, fitted to two bumps by Adam.

    emlearn writes six decimals of each weight. So the weights are rounded to 1/32 and alpha is 1/2: then these decimals
    are the weights themselves, and what is left is the error of single precision.
    """
    torch = pytest.importorskip("torch")
    from plunit.torch import PLU, to_network

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two would wait for one another
    torch.manual_seed(0)
    x = 4 * torch.rand(512, 2) - 2
    y = torch.exp(-((x - 0.7) ** 2).sum(1)) - 0.5 * torch.exp(-((x + 0.9) ** 2).sum(1))
    linear = torch.nn.Linear
    model = torch.nn.Sequential(linear(2, 8), PLU(0.5), linear(8, 8), PLU(0.5), linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((model(x).squeeze(1) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    assert loss < 0.02
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.round(32 * weight) / 32)
    return to_network(model.eval())


@pytest.fixture(scope="module")
def highest(trained):
    """The corner of a cell where the network is largest: the exact maximum, because it is linear on each cell."""
    found = cells(trained, BOX)
    best = int(np.argmax(found.values[:, 0]))
    return found.vertices[best], float(found.values[best, 0])


def test_omlt_finds_the_same_maximum(trained, highest, tmp_path):
    onnx = pytest.importorskip("onnx")
    pyomo, omlt = pytest.importorskip("pyomo.environ"), pytest.importorskip("omlt")
    pytest.importorskip("highspy")
    from omlt.io import load_onnx_neural_network
    from omlt.neuralnet import ReluBigMFormulation

    save_onnx(trained, tmp_path / "net.onnx", relu=True)
    definition = load_onnx_neural_network(onnx.load(tmp_path / "net.onnx"), input_bounds=dict(enumerate(BOX)))
    model = pyomo.ConcreteModel()
    model.net = omlt.OmltBlock()
    model.net.build_formulation(ReluBigMFormulation(definition))
    model.largest = pyomo.Objective(expr=model.net.outputs[0], sense=pyomo.maximize)
    solver = pyomo.SolverFactory("appsi_highs")
    solver.highs_options = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": 1e-9}
    solver.solve(model)
    x = np.array([pyomo.value(model.net.inputs[i]) for i in range(2)])
    assert pyomo.value(model.largest) == pytest.approx(highest[1], abs=1e-6)
    assert trained(x).item() == pytest.approx(highest[1], abs=1e-6)


def test_emlearn_has_the_same_maximum(trained, highest, tmp_path, monkeypatch):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: cc is not on the path")
    monkeypatch.chdir(tmp_path)  # where it compiles
    # emlearn changes how NumPy treats floating-point errors
    with np.errstate(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        emlearn = pytest.importorskip("emlearn")
        model = emlearn.convert(to_sklearn(trained), return_type="regressor")
        points = np.random.default_rng(0).integers(-128, 129, size=(200, 2)) / 64
        y = np.array(model.predict(np.concatenate([points, highest[0][None]])))
    np.testing.assert_allclose(y[:-1], trained(points).ravel(), rtol=0, atol=1e-6)
    assert y.max() == pytest.approx(highest[1], abs=1e-6)
