"""What Triton makes of the kernels for GPUs, read from its assembly; no GPU is needed, and none has run it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

triton = pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("the interpreter compiles nothing", allow_module_level=True)

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from plunit.torch import triton_kernel  # noqa: E402

NVIDIA = {f"sm_{arch}": GPUTarget("cuda", arch, 32) for arch in (80, 90, 100)}
AMD = {"gfx942": GPUTarget("hip", "gfx942", 64)}
KERNELS = ["_forward", "_backward", "_learned_forward", "_learned_backward"]
DTYPES = ["fp16", "bf16", "fp32", "fp64"]


def compiled(name, dtype, target, last=False):
    """Compile one kernel for sizes that are multiples of 16."""
    kernel = getattr(triton_kernel, name)
    rows, columns = (triton_kernel.ROWS, triton_kernel.COLUMNS) if last else (1, triton_kernel.BLOCK)
    constants = {"block": triton_kernel.BLOCK, "wide": False, "rows": rows, "columns": columns, "last": last}
    wide = "fp64" if dtype == "fp64" else "fp32"
    signature, given, aligned = {}, {}, {}
    for i, argument in enumerate(kernel.arg_names):
        if argument in constants:
            signature[argument], given[(i,)] = "constexpr", constants[argument]
        elif argument in ("alpha_ptr", "c_ptr", "sums_ptr"):
            signature[argument] = f"*{wide}"
        elif argument.endswith("_ptr"):
            signature[argument] = f"*{dtype}"
        else:
            signature[argument] = "fp64" if argument in ("alpha", "c", "rim") else "i32"
        if argument.endswith("_ptr") or argument in ("n", "inner", "channels"):
            aligned[(i,)] = [["tt.divisibility", 16]]
    return triton.compile(ASTSource(kernel, signature, given, aligned), target, triton_kernel._OPTIONS)


@pytest.mark.parametrize("target", NVIDIA)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_code_for_nvidia(name, dtype, target, tmp_path):
    made = compiled(name, dtype, NVIDIA[target])
    code = made.asm["ptx"]
    accesses = re.findall(r"(?:ld|st)\.global\.(\S+)", code)
    vectors = {access for access in accesses if access.startswith("v")}
    assert vectors == {"v2.b64" if dtype == "fp64" else "v4.b32"}  # 128 bits each
    scalars = len(accesses) - sum(access in vectors for access in accesses)
    assert scalars <= {"_learned_forward": 16, "_learned_backward": 4}.get(name, 0)  # alpha and c, and the sums
    assert "fma." not in code
    assert ".ftz" not in code
    ptxas = (
        Path(triton.__file__).parent / "backends/nvidia/bin" / ("ptxas-blackwell" if target == "sm_100" else "ptxas")
    )
    source = tmp_path / "kernel.ptx"
    source.write_text(code)
    arch = re.search(r"\.target (\w+)", code)[1]
    command = [str(ptxas), "-v", f"--gpu-name={arch}", str(source), "-o", str(tmp_path / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert re.findall(r"(\d+) bytes spill", said) == ["0", "0"]
    registers = int(re.search(r"Used (\d+) registers", said)[1])
    assert registers <= 80
    print(f"{target} {dtype} {name}: {registers} registers, no spills")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_code_for_amd(name, dtype):
    code = compiled(name, dtype, AMD["gfx942"]).asm["amdgcn"]
    words = 2 if dtype in ("fp16", "bf16") else 4  # a block of 1,024 in 256 threads: 4 numbers each
    vectors = set(re.findall(r"(?:global|buffer)_(?:load|store)_dwordx(\d)", code)) - (
        {"2"} if dtype == "fp64" else set()
    )
    assert vectors == {str(words)}
    if (name, dtype) != ("_learned_backward", "fp16"):  # there the compiler fuses products with conversions
        assert not re.search(r"\bv_(pk_)?fma", code)
    assert re.search(r"\.vgpr_spill_count: +0\b", code)


@pytest.mark.parametrize("dtype", DTYPES)
def test_channels_last_compiles(dtype):
    code = compiled("_learned_backward", dtype, NVIDIA["sm_80"], last=True).asm["ptx"]
    assert "v2.b64" in code if dtype == "fp64" else "v4.b32" in code
