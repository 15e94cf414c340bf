# `make demo`, `make check` and `make test` do everything from a bare clone; `make test CONSTRAINTS=`
# with the newest releases of all packages, in an environment of its own.
PYTHON ?= python3
CONSTRAINTS := constraints.txt
VENV := $(if $(CONSTRAINTS),.venv,.venv-newest)
BIN := $(VENV)/bin
PIP_INSTALL := pip install --quiet --disable-pip-version-check \
	$(if $(CONSTRAINTS),--constraint $(CONSTRAINTS),--upgrade --upgrade-strategy eager)
# One process per core; files stay together until a core has nothing left to do.
PYTEST := $(BIN)/python -m pytest --numprocesses=logical --dist=worksteal
# Peers and data of the study of pooling; their requirements have no wheels, and are not needed.
STUDY := torch-geometric-pool==1.0.2 pygsp==0.5.1
# PyTorch Geometric at import, with torch before and since 2.15; the last one on Python 3.13.
WHEEL_WARNINGS := -W error -W 'ignore:`torch.jit:DeprecationWarning' -W 'ignore:`torch.jit:FutureWarning' -W 'ignore:Failing to pass a value:DeprecationWarning'

.PHONY: help demo check test lint wheel bench pages clean always

help: ## print this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

$(VENV)/installed: pyproject.toml $(if $(CONSTRAINTS),$(CONSTRAINTS),always)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) --editable ".[dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(STUDY)
	@touch $@

demo: $(VENV)/installed ## two minutes: train on handwritten digits, write the report, predict
	@rm -rf build/demo
	$(BIN)/haarpool train --repeats 3 --epochs 35 --out build/demo/run
	$(BIN)/haarpool predict build/demo/run --out build/demo/predictions.csv
	@head -4 build/demo/predictions.csv
	@echo "look at build/demo/run/report.html and build/demo/predictions.csv"

check: lint ## two minutes: style, types, imports, quick tests
	$(PYTEST) -m "not slow and not browser" --hypothesis-profile=quick

test: lint wheel ## ten minutes: everything that must hold before a change lands
	$(PYTEST)

lint: $(VENV)/installed ## style, types, directions of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

wheel: $(VENV)/installed ## build the wheel and use it in a new environment without extras
	rm -rf build/wheel
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv --clear build/wheel/env
	build/wheel/env/bin/$(PIP_INSTALL) build/wheel/*.whl
	cd build/wheel && env/bin/python $(WHEEL_WARNINGS) ../../tests/helpers/installed_wheel.py

bench: $(VENV)/installed ## measure speed and memory, write results/
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks --only clustering,training_loop,host_time

pages: $(VENV)/installed ## write the report, and the tables of README and docs/, from results/
	$(BIN)/python -m paper --report
	$(BIN)/python -m paper.page
	$(BIN)/python -m benchmarks.default_scores --table
	$(BIN)/python -m benchmarks.speed_page
	$(BIN)/python -m benchmarks.layer_page

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-newest build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
