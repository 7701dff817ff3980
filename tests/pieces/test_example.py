"""The worked example of docs/proofs.md: its C program, compiled and run, has the values of its network."""

import doctest
import re
import subprocess
from pathlib import Path

import pytest
from compilers import compile_c

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"


@pytest.mark.skipif(not PAGE.exists(), reason="docs are not in an installed package")
def test_the_program_of_the_page_has_the_values_of_the_network():
    pytest.importorskip("torch")
    pytest.importorskip("highspy")
    text = PAGE.read_text().partition(">>> temporary.cleanup()")[0]
    names = {}
    exec("".join(example.source for example in doctest.DocTestParser().get_examples(text)), names)
    source = re.search(r"\$ cat main\.c\n(.*?)    \$ cc", text, re.DOTALL)[1]
    with names["temporary"]:
        program = compile_c(source, names["header"].parent)
        said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert float(said) == pytest.approx(names["f"]([1.0, -1.0, 0.5, 2.0, -2.0])[0], abs=1e-12)
