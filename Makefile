# `make reproduce` and `make test` are all a newcomer needs; each sets up .venv on its first call.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
BUILD  := pyproject.toml setup.py constraints.txt $(wildcard src/plunit/torch/csrc/*)

.PHONY: reproduce test lint types unit tensorflow soak fuzz bench clean

reproduce: $(VENV)/lab
	$(BIN)/plunit reproduce

test: lint types unit tensorflow

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev
	$(BIN)/mypy

unit: $(VENV)/dev
	$(BIN)/python -m pytest

tensorflow: $(VENV)/tensorflow
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest tests/test_keras.py

# a hundred kills at random moments: a quarter of an hour on a quiet machine
soak: $(VENV)/dev
	$(BIN)/plunit data cifar10
	$(BIN)/python -m pytest -m soak -s tests/lab/test_soak.py

# 52,000 random networks against rational arithmetic: a quarter of an hour on two cores
fuzz: $(VENV)/dev
	$(BIN)/python tests/support/fuzz.py

bench: $(VENV)/bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build

$(VENV)/base: $(BUILD)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "plunit needs Python 3.10 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch setuptools wheel ninja numpy
	touch $@

# torch is there before plunit, so that the build sees it; no isolation, so that it is this torch
$(VENV)/lab: $(VENV)/base
	$(PIP) --no-build-isolation --editable '.[lab]'
	touch $@

$(VENV)/dev: $(VENV)/base
	$(PIP) --no-build-isolation --editable '.[dev]'
	touch $(VENV)/lab $@

$(VENV)/bench: $(VENV)/lab
	$(PIP) --no-build-isolation --editable '.[bench]'
	touch $@

$(VENV)/tensorflow: $(VENV)/dev
	$(PIP) tensorflow-cpu
	touch $@
