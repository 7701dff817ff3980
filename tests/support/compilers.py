"""What a test needs that compiles C++, as torch.compile does for the processor."""

import os
import shutil

import pytest

COMPILER = shutil.which(os.environ.get("CXX", "c++"))
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C++ compiler")
