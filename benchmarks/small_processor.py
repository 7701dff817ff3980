"""C headers on small ARM processors: bytes of flash and instructions of a call, in floating and in fixed point.

Needs `pip install ziglang unicorn`: a cross-compiler, and an emulator that counts the instructions.
"""

import statistics
import struct
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.pieces import trained
from plunit.pieces import Network, quantize, save_c

PROCESSORS = {
    "Cortex-M0, no floating point": ["-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0"],
    "Cortex-M4, float in hardware": ["-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp"],
}
SHAPES = {"double": ("double", "double"), "float": ("float", "float"), "int16": ("int16_t", "int32_t")}
SHAPES["int8"] = SHAPES["int16"]
"""What a header's function takes and returns."""

Array = NDArray[Any]

MEMORY, STACK, END, PAGE = 0x2000_0000, 0x2002_0000, 0x3000_0000, 0x1000
PROGRAM = '#include "m.h"\nvoid _start(void) {{ {call}((const {x} *){at}, ({y} *)({at} + 256)); }}\n'
POINTS = 100


def header(net: Network, box: Any, kind: str, folder: Path) -> tuple[Array, Array]:
    """Write the header m.h of this kind; return random inputs as the function takes them, and its outputs."""
    x = np.random.default_rng(0).uniform(*np.transpose(box), (POINTS, net.inputs))
    if kind in ("double", "float"):
        save_c(net, folder / "m.h", "m", dtype=kind, box=box)
        x = x.astype(np.float64 if kind == "double" else np.float32)
        return x, net(x).astype(x.dtype)
    fixed = quantize(net, box, int(kind.removeprefix("int")))
    save_c(fixed, folder / "m.h", "m")
    x = np.rint((x - fixed.offset) * np.ldexp(1.0, fixed.fraction)).astype(np.int16)
    return x, fixed.integers(x).astype(np.int32)


def compiled(kind: str, target: list[str], folder: Path, types: tuple[str, str] | None = None) -> bytes:
    """Return an executable whose start calls the function once, on arrays at a fixed address."""
    (x, y), call = types or SHAPES[kind], "m_fixed" if kind.startswith("int") else "m"
    (folder / "main.c").write_text(PROGRAM.format(call=call, x=x, y=y, at=f"{MEMORY:#x}"))
    zig = [sys.executable, "-m", "ziglang", "cc", *target, "-Os", "-s", "-Wl,--gc-sections"]
    subprocess.run([*zig, "-o", folder / "main.elf", folder / "main.c"], check=True)
    return (folder / "main.elf").read_bytes()


def parts(elf: bytes) -> tuple[int, list[tuple[int, bytes]], int]:
    """Return the start of a 32-bit ELF file, its segments (address, bytes), and the bytes of code and tables."""
    start, segments, sections = struct.unpack_from("<3I", elf, 24)
    size, count, width, number = struct.unpack_from("<4H", elf, 42)
    loaded = []
    for i in range(count):
        kind, offset, address, _, length = struct.unpack_from("<5I", elf, segments + i * size)
        if kind == 1:
            loaded.append((address, elf[offset : offset + length]))
    rows = (struct.unpack_from("<6I", elf, sections + i * width) for i in range(number))
    return start, loaded, sum(length for _, kind, flags, _, _, length in rows if kind == 1 and flags & 2)


def instructions(elf: bytes, x: Array, y: Array, atol: float | None = None) -> float:
    """Return the median number of instructions of a call over the inputs x; its outputs must be y, to rounding."""
    atol = (1e-5 if y.dtype.kind == "f" else 0) if atol is None else atol
    import unicorn
    from unicorn import arm_const

    start, segments, _ = parts(elf)
    machine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    machine.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M4)
    pages = {page for at, data in segments for page in range(at // PAGE, (at + len(data)) // PAGE + 1)}
    for page in pages:
        machine.mem_map(page * PAGE, PAGE)
    for at, data in segments:
        machine.mem_write(at, data)
    machine.mem_map(MEMORY, STACK - MEMORY)
    machine.mem_map(END, PAGE)
    counted = [0]

    def count(*_: Any) -> None:
        counted[0] += 1

    machine.hook_add(unicorn.UC_HOOK_CODE, count)
    found = []
    for row, wanted in zip(x, y, strict=True):
        counted[0] = 0
        machine.mem_write(MEMORY, row.tobytes())
        machine.reg_write(arm_const.UC_ARM_REG_SP, STACK - 64)
        machine.reg_write(arm_const.UC_ARM_REG_LR, END | 1)
        machine.emu_start(start | 1, END)
        found.append(counted[0])
        result = np.frombuffer(machine.mem_read(MEMORY + 256, wanted.nbytes), wanted.dtype)
        np.testing.assert_allclose(result, wanted, atol=atol, rtol=0)
    return statistics.median(found)


def main() -> None:
    """Print a table for each size of network."""
    if missing := [name for name in ("ziglang", "unicorn") if find_spec(name) is None]:
        print(f"small processors: not measured; pip install {' '.join(missing)}")
        return
    nets = {inputs: trained(inputs, 1).member(0) for inputs in (2, 5)}
    for processor, target in PROCESSORS.items():
        print(f"\n{processor}, -Os\n{'network':<20}{'numbers':<10}{'bytes':>8}{'instructions':>14}")
        for inputs, net in nets.items():
            for kind in SHAPES:
                with tempfile.TemporaryDirectory() as folder:
                    x, y = header(net, [(-2, 2)] * inputs, kind, Path(folder))
                    elf = compiled(kind, target, Path(folder))
                name = " - ".join(map(str, net.widths))
                print(f"{name:<20}{kind:<10}{parts(elf)[2]:>8,}{instructions(elf, x, y):>14,.0f}", flush=True)


if __name__ == "__main__":
    main()
