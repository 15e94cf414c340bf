# `make demo` and `make test` do everything from a bare clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test lint wheel bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) --editable ".[dev]"
	@touch $@

demo: $(VENV)/installed ## see it work: train on MUTAG, write the report, predict
	@rm -rf build/demo
	$(BIN)/haarpool train MUTAG --repeats 3 --out build/demo/mutag
	$(BIN)/haarpool predict build/demo/mutag MUTAG --out build/demo/predictions.csv
	@head -4 build/demo/predictions.csv
	@echo "look at build/demo/mutag/report.html and build/demo/predictions.csv"

test: lint wheel ## everything that must hold before a change lands
	$(BIN)/python -m pytest

lint: $(VENV)/installed ## style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

wheel: $(VENV)/installed ## build the wheel and use it in an environment of its own, without extras
	rm -rf build/wheel
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv --clear build/wheel/env
	build/wheel/env/bin/$(PIP_INSTALL) build/wheel/*.whl
	cd build/wheel && env/bin/python -W error -W 'ignore:`torch.jit:DeprecationWarning' ../../tests/helpers/installed_wheel.py

bench: $(VENV)/installed ## the figures of speed, as ratios, into results/
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/clustering.py
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/training.py

clean: ## remove all that the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
