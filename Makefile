# PYTHON makes the virtual environment (3.11 or newer); VENV is where it goes.
PYTHON ?= python3
VENV ?= .venv
# VENV_ALL is where test-all installs the extras too. TORCH goes in first: without a version that the package
# index has for processors alone, torch brings several gigabytes for graphics cards.
VENV_ALL ?= $(VENV)s/all
TORCH ?= torch==2.13.0
# INSPECTOR speaks with the MCP server in the tests of the extras, where there is npm.
INSPECTOR ?= @modelcontextprotocol/inspector@0.15.0
# BENCH_DATA holds a directory for each question set; what is not there is left out of the benchmarks.
BENCH_DATA ?= $(or $(CASTLE_BENCH_DATA),../shared/data)
# WORKERS is how many tests run at once; empty for one after another.
WORKERS ?= -n auto --dist loadfile

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_ALL := $(VENV_ALL)/.installed
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
DEMO := CASTLE_HOME=.demo/home $(BIN)/castle --palace .demo/palace

.PHONY: demo test test-all lint bench venv

venv: $(INSTALLED)

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(INSTALLED_ALL): pyproject.toml
	test -x $(VENV_ALL)/bin/python || $(PYTHON) -m venv $(VENV_ALL)
	$(VENV_ALL)/bin/python $(PIP_INSTALL) $(TORCH)
	$(VENV_ALL)/bin/python $(PIP_INSTALL) -e '.[all,dev,dev-models]'
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix $(VENV_ALL)/inspector $(INSPECTOR); fi
	@touch $@

demo: $(INSTALLED)
	rm -rf .demo
	mkdir -p .demo/project
	cp -R README.md CONTRIBUTING.md docs castle .demo/project/
	rm -rf .demo/project/docs/figures  # what is no text is left out, and ends init with 3
	$(DEMO) init .demo/project --yes
	$(DEMO) status
	$(DEMO) search 'what happens when a configuration file is broken' --limit 3
	$(DEMO) search 'who may make changes to a drawer' --limit 3
	$(DEMO) search 'what is a tombstone' --room documentation --limit 3

test: $(INSTALLED)
	$(BIN)/python -m pytest $(WORKERS) -m 'not slow and not extras'

test-all: lint $(INSTALLED_ALL)
	$(VENV_ALL)/bin/python -m pytest $(WORKERS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A small run of everything whose data is there, and the report; docs/benchmarks.md says what it tells.
bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.speed --quick --out .bench/speed.json
	$(BIN)/python -m benchmarks.retrieval quick $(BENCH_DATA) --work .bench
	$(BIN)/python -m benchmarks.report
