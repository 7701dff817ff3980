"""What a test needs that compiles: C++ as torch.compile has it, plunit's own programs, and headers in C."""

import functools
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from plunit.programs import libraries

COMPILER = shutil.which(os.environ.get("CXX", "c++"))
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C++ compiler")

STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Werror")
LANGUAGES = {"C": ("gcc", "-std=c99"), "C++": ("g++", "-std=c++17")}
SANITIZER = ("-fsanitize=undefined", "-fno-sanitize-recover")
NUMBERS = {"double": np.float64, "float": np.float32, "int16_t": np.int16, "int32_t": np.int32}

TARGETS = [("-march=x86-64-v3",), ("-march=x86-64", "-DPLUNIT_FUSED")]
"""Narrower vectors than this processor may have: 8 lanes, and 4 with fused multiply-add in software."""

_PROCESSOR = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
needs_fma = pytest.mark.skipif("fma" not in _PROCESSOR.split(), reason="needs an x86 processor with fused multiply-add")


@functools.cache
def narrow_program(target, program):
    """Return a compiled program of plunit for one of the targets."""
    return libraries.compile_program(target, program)


PROGRAM = """
#include <stdio.h>
{includes}
int main(void) {{
    {given} x[{inputs}];
    {returned} y[{outputs}];
    while (fread(x, sizeof x, 1, stdin) == 1) {{
        {name}(x, y);
        fwrite(y, sizeof y, 1, stdout);
    }}
    return 0;
}}
"""


def compile_c(source, folder, language="C", flags=()):
    """Compile a text with every warning as an error, and return the program; skip the test without a compiler."""
    compiler, standard = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler: {compiler} is not on the path")
    path = folder / ("main.c" if language == "C" else "main.cpp")
    path.write_text(source)
    program = folder / f"main{sysconfig.get_config_var('EXE') or ''}"
    subprocess.run([compiler, standard, "-O1", *STRICT, *flags, path.name, "-o", program], cwd=folder, check=True)
    return program


def call_c(name, x, outputs, folder, types=("double", "double"), language="C", flags=()):
    """Return y [n, outputs] of the function `name(x, y)` for x [n, inputs]; all headers of the folder are included."""
    given, returned = types
    source = PROGRAM.format(
        includes="\n".join(f'#include "{path.name}"' for path in sorted(folder.glob("*.h"))),
        given=given,
        returned=returned,
        inputs=x.shape[1],
        outputs=outputs,
        name=name,
    )
    program = compile_c(source, folder, language, flags)
    sent = np.ascontiguousarray(x, dtype=NUMBERS[given]).tobytes()
    done = subprocess.run([program], input=sent, capture_output=True, check=True)
    return np.frombuffer(done.stdout, dtype=NUMBERS[returned]).reshape(len(x), outputs)
