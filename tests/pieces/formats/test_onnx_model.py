import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import activation, curve, network, save_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def run(found, x, folder):
    save_onnx(found, folder / "wave.onnx")
    session = onnxruntime.InferenceSession(str(folder / "wave.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.asarray(x)[:, None]})[0]


@pytest.mark.parametrize(("seed", "outputs"), [(0, 1), (4, 2), (12, 3), (1, 1)])
def test_the_model_is_the_network(seed, outputs, tmp_path):
    net = random_network(seed, 1, 8, 3, outputs)
    found = curve(net, -3.0, 3.0)
    x = np.concatenate([np.linspace(-3, 3, 501), found.knots])
    np.testing.assert_allclose(run(found, x, tmp_path), net(x[:, None]), rtol=1e-12, atol=1e-12)


def test_one_piece_and_beyond_the_ends(tmp_path):
    net = network([([[2.0]], [1.0]), activation.plu(1.0), ([[3.0]], [0.0])])
    found = curve(net, -1.0, 1.0)
    np.testing.assert_allclose(run(found, [-5.0, 0.0, 7.0], tmp_path)[:, 0], [-27.0, 3.0, 45.0], rtol=1e-14)


def test_an_infinite_number_does_not_hurt_the_others(tmp_path):
    found = curve(network([([[1.0]], [0.0]), activation.plu()]), -2.0, 2.0)
    y = run(found, [0.5, np.inf, -np.inf, np.nan, 2.0], tmp_path).ravel()
    np.testing.assert_allclose(y, [0.5, np.inf, -np.inf, np.nan, 1.1])


def test_a_steep_step_stays(tmp_path):
    net = network([([[1e13]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])])
    assert run(curve(net, -3.0, 3.0), [-3.0, 0.2, 0.4, 3.0], tmp_path).ravel().tolist() == [-1, -1, 1, 1]


def test_dead_kinks_are_left_out(tmp_path):
    save_onnx(curve(network([([[1.0]], [0.0]), activation.plu(1.0)]), -2.0, 2.0), tmp_path / "f.onnx")
    tables = {table.name: list(table.dims) for table in onnx.load(str(tmp_path / "f.onnx")).graph.initializer}
    assert tables["slopes"] == [1, 1]
