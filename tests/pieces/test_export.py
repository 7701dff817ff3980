import shutil
import subprocess

import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import activation, curve, network
from plunit.pieces.export import save_c, save_onnx

PROGRAM = """
#include <stdio.h>
#include "wave.h"
int main(void) {
    double x, y[8];
    while (scanf("%lf", &x) == 1) {
        wave(x, y);
        for (int i = 0; i < OUTPUTS; i++) printf("%.17g\\n", y[i]);
    }
    return 0;
}
"""


def run_c(found, x, folder):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: cc is not on the path")
    save_c(found, folder / "wave.h", "wave")
    (folder / "main.c").write_text(PROGRAM)
    outputs = found.values.shape[1]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-DOUTPUTS={outputs}"]
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=folder, check=True)
    text = "\n".join(repr(float(number)) for number in x)
    done = subprocess.run([folder / "main"], input=text, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), dtype=float).reshape(len(x), outputs)


def run_onnx(found, x, folder):
    onnxruntime = pytest.importorskip("onnxruntime")
    save_onnx(found, folder / "wave.onnx")
    session = onnxruntime.InferenceSession(str(folder / "wave.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.asarray(x)[:, None]})[0]


@pytest.mark.parametrize("run", [run_c, run_onnx])
@pytest.mark.parametrize(("seed", "outputs"), [(0, 1), (4, 2), (12, 3), (1, 1)])
def test_program_equals_the_network(run, seed, outputs, tmp_path):
    net = random_network(seed, 1, 8, 3, outputs)
    found = curve(net, -3.0, 3.0)
    x = np.concatenate([np.linspace(-3, 3, 501), found.knots])
    result = run(found, x, tmp_path)
    np.testing.assert_allclose(result, net(x[:, None]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("run", [run_c, run_onnx])
def test_one_piece_and_beyond_the_ends(run, tmp_path):
    net = network([([[2.0]], [1.0]), activation.plu(1.0), ([[3.0]], [0.0])])
    found = curve(net, -1.0, 1.0)
    assert found.merged().pieces == 1
    np.testing.assert_allclose(run(found, [-5.0, 0.0, 7.0], tmp_path)[:, 0], [-27.0, 3.0, 45.0], rtol=1e-14)


def test_dead_kinks_are_left_out(tmp_path):
    found = curve(network([([[1.0]], [0.0]), activation.plu(1.0)]), -2.0, 2.0)
    save_c(found, tmp_path / "f.h")
    assert "1 pieces" in (tmp_path / "f.h").read_text()
    onnx = pytest.importorskip("onnx")
    save_onnx(found, tmp_path / "f.onnx")
    tables = {table.name: list(table.dims) for table in onnx.load(str(tmp_path / "f.onnx")).graph.initializer}
    assert tables["slopes"] == [1, 1]


@pytest.mark.parametrize("name", ["", "1st", "a b", "x;"])
def test_the_name_must_be_an_identifier(name, tmp_path):
    with pytest.raises(ValueError, match="C identifier"):
        save_c(curve(random_network(0, 1, 3, 1), -1.0, 1.0), tmp_path / "f.h", name)
