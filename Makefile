# Two commands do everything on a machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-slow test-long test-versions mutants scoreboard check docs setup setup-bench bench results page wheel image clean

help:
	@echo "make demo         infer the protein-signalling network from the bundled Sachs data"
	@echo "make test         run the tests (five minutes on two free cores)"
	@echo "make test-slow    run the slower tests (twenty minutes on two free cores)"
	@echo "make test-long    run the longest tests: calibration and random knowledge at length"
	@echo "make test-versions run the tests on each of Python 3.11 to 3.13 that is installed"
	@echo "make mutants      plant formula errors and see that a test catches each"
	@echo "make scoreboard   kill, fill and damage; see that nothing is lost (half an hour on two busy cores)"
	@echo "make check        ruff and pyright"
	@echo "make docs         build the documentation into site/"
	@echo "make setup        virtual environment in .venv with the development extra"
	@echo "make setup-bench  add what benchmarks and comparisons with other libraries need"
	@echo "make wheel        build a wheel, install it with its dependencies into a new environment and use it"
	@echo "make image        build the container image, where docker runs"
	@echo "make bench        measure, print tables"
	@echo "make page         renew the numbers in docs/results.md, docs/accuracy.md and README.md from results/"
	@echo "make results      run what is missing of every study, renew the pages (days on two cores; see docs/results.md)"

$(VENV)/core: pyproject.toml constraints.txt
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

# the demo draws a figure; it does without where matplotlib cannot be installed
$(VENV)/report: $(VENV)/core
	$(PIP) matplotlib || echo "no matplotlib: no figure"
	touch $@

$(VENV)/dev: $(VENV)/core
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/docs: $(VENV)/core
	$(PIP) --editable '.[docs]'
	touch $@

# dibs-lib asks for Jupyter, which it does not need: install it without its dependencies
$(VENV)/bench: $(VENV)/dev
	$(PIP) --editable '.[bench,cluster]'
	$(PIP) --no-deps dibs-lib
	touch $@

setup: $(VENV)/dev

setup-bench: $(VENV)/bench

demo: $(VENV)/report
	$(BIN)/python examples/sachs_demo.py run/sachs

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not long"

test-long: $(VENV)/dev
	XLA_FLAGS=--xla_cpu_multi_thread_eigen=false NUMBA_OPT=3 $(BIN)/python -m pytest -n 2 --dist worksteal -m "long"

# every interpreter that is there: Python 3.11 to 3.13, each with an environment of its own
VERSIONS ?= 3.11 3.12 3.13
test-versions:
	@for version in $(VERSIONS); do \
	  command -v python$$version > /dev/null && python$$version -c 'pass' 2> /dev/null || { echo "no Python $$version"; continue; }; \
	  echo "Python $$version"; $(MAKE) --no-print-directory VENV=.venv-$$version PYTHON=python$$version test || exit 1; \
	done

mutants: $(VENV)/dev
	$(BIN)/python tests/mutants.py

scoreboard: $(VENV)/dev
	$(BIN)/python -m tests.scoreboard

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# warnings are errors; nothing on the pages is loaded from other hosts
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

wheel: $(VENV)/dev
	$(BIN)/python tests/wheel.py

# skipped where there is no docker, or its daemon does not run
image:
	@if docker info --format '{{.ServerVersion}}' > /dev/null 2>&1; then docker build --tag dagpost .; \
	  else echo "docker does not run here: no image"; fi

bench: $(VENV)/dev
	$(BIN)/python benchmarks/scores.py
	$(BIN)/python benchmarks/exact.py

# finished tasks are files in results/tasks and are not run again; STUDIES and STUDY_OPTIONS narrow it down
STUDIES ?= all
results: $(VENV)/bench
	$(BIN)/dagpost study $(STUDIES) $(STUDY_OPTIONS)
	$(BIN)/dagpost study $(PAGES)

# the text of docs/results.md is in results/page.md; it comes last, since a sentence that no longer holds is an error
PAGES := --page README.md --page docs/accuracy.md --page docs/results.md
page: $(VENV)/dev
	$(BIN)/dagpost study $(PAGES)

clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache .hypothesis
