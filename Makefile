# PYTHON makes the virtual environment (3.11 or newer); VENV is where it goes.
PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO := CASTLE_HOME=.demo/home $(BIN)/castle --palace .demo/palace

.PHONY: demo test test-all lint bench venv

venv: $(INSTALLED)

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(INSTALLED)
	rm -rf .demo
	mkdir -p .demo/project
	cp -R README.md CONTRIBUTING.md docs castle .demo/project/
	$(DEMO) init .demo/project --yes
	$(DEMO) status
	$(DEMO) search 'what happens when a configuration file is broken' --limit 3
	$(DEMO) search 'who may make changes to a drawer' --limit 3
	$(DEMO) search 'RefusedError' --room config --limit 3

test: $(INSTALLED)
	$(BIN)/python -m pytest -m 'not slow'

test-all: lint
	$(BIN)/python -m pytest

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.mine_bench --megabytes 1
