# `make reproduce` and `make test` are all a newcomer needs; each sets up .venv on its first call.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
BUILD  := pyproject.toml setup.py constraints.txt src/plunit/torch/native.py $(wildcard src/plunit/torch/csrc/*)

# tests that need NumPy alone
NUMPY  := tests/base tests/expressions tests/pieces tests/test_dist.py tests/test_functional.py tests/test_gains.py \
          tests/test_imports.py

.PHONY: reproduce test lint types unit kills tensorflow docs libraries numpy soak fuzz bench dist clean

reproduce: $(VENV)/lab
	$(BIN)/plunit reproduce

test: lint types docs unit tensorflow

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

types: $(VENV)/dev
	$(BIN)/mypy

# a test file stays in one process, because its fixtures may have trained something; files with few long tests do not
# come last, where one process would wait for the other
unit: $(VENV)/dev
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
	$(MAKE) --no-print-directory kills
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
	  echo "No Chromium was found, so the browser tests of the playground were skipped. Install it to run them."

# Ctrl-C, kills and full disks, with nothing else running: they wait for what other processes do
kills: $(VENV)/dev
	$(BIN)/python -m pytest -m kills tests/lab tests/test_cli.py

tensorflow: $(VENV)/tensorflow
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -k keras tests/test_keras.py tests/test_array_functions.py

# the site, in build/docs; warnings and broken references are errors, and nothing is fetched. The examples' arrays are
# small: with several threads they take longer
docs: $(VENV)/dev
	KERAS_BACKEND=torch OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs

# PLU by name in other libraries; timm runs where torchvision is installed
libraries: $(VENV)/dev
	$(PIP) deepxde monai skorch stable-baselines3 transformers
	$(BIN)/python -m pytest tests/torch/test_libraries.py

# the wheel with nothing but NumPy, on another Python if wanted: make numpy PYTHON=python3.14
numpy:
	$(PYTHON) -m venv --clear build/numpy
	build/numpy/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
	  . hypothesis pytest 'setuptools>=77'
	build/numpy/bin/python -m pytest $(NUMPY)

# a hundred kills at random moments: a quarter of an hour on a quiet machine
soak: $(VENV)/dev
	$(BIN)/plunit data cifar10
	$(BIN)/python -m pytest -m soak -s tests/lab/test_soak.py

# 100,000 random texts as expressions; 62,000 random networks against rational arithmetic: twenty minutes on two
# cores
fuzz: $(VENV)/dev
	$(BIN)/python -m pytest -m soak tests/expressions
	$(BIN)/python tests/support/fuzz.py

bench: $(VENV)/bench
	$(BIN)/python -m benchmarks

# build the sdist and the wheel, check them, and use the wheel in an empty environment
dist: $(VENV)/dev
	$(BIN)/python tools/dist.py

clean:
	rm -rf $(VENV) build dist docs/gallery docs/reference

$(VENV)/base: $(BUILD)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "plunit needs Python 3.10 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch setuptools wheel numpy
	touch $@

# the native op is compiled into the user's cache; without a compiler everything works, more slowly
$(VENV)/lab: $(VENV)/base
	$(PIP) --no-build-isolation --editable '.[lab]'
	-$(BIN)/python -m plunit.torch.build
	touch $@

$(VENV)/dev: $(VENV)/base
	$(PIP) --no-build-isolation --editable '.[dev]'
	-$(BIN)/python -m plunit.torch.build
	touch $(VENV)/lab $@

$(VENV)/bench: $(VENV)/lab
	$(PIP) --no-build-isolation --editable '.[bench]'
	touch $@

$(VENV)/tensorflow: $(VENV)/dev
	$(PIP) tensorflow-cpu
	touch $@
