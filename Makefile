# `make test` and `make demo` set up everything they need in .venv on a fresh machine.
#   test         lint, types, kernels, all tests      quick     lint and the tests of QUICK
#   test-extras  benchmarks and studies, small        bench     all measurements of speed
#   coverage     all tests, and which lines they reach
#   fuzz         attacks for MINUTES (10), and as long again guided by coverage
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Tests start many programs: bytecode is kept, whatever the environment says, lest each compile anew.
export PYTHONDONTWRITEBYTECODE :=

# What most changes break first, in less than a minute: the house, all estimators and services, and
# the layers that the rest stands on, with few examples for each property.
QUICK  := tests/test_layering.py tests/test_domains.py tests/test_estimator.py \
          tests/test_all_estimators.py tests/test_what_works.py tests/corpus tests/decompose \
          tests/evaluation tests/problems tests/structures

# Where the tests marked «extras» are: heavy, or in need of what developers need not have. An extra
# to install for them is one more stamp that the target test-extras stands on.
EXTRAS := tests/benchmarks tests/studies tests/test_pairs_of_services.py tests/corpus \
          tests/test_inputs.py tests/demo tests/pictures tests/tracking tests/cli/test_cli_track.py \
          tests/cli/test_cli_track_images.py

BENCHMARKS := $(basename $(notdir \
              $(shell grep -l "^from benchmarks.options import begin" benchmarks/*.py)))

.PHONY: test test-extras quick lint types kernels unit coverage demo fuzz bench clean

# Types are checked while the kernels compile.
test: lint
	@$(MAKE) --no-print-directory -j2 types kernels
	@$(MAKE) --no-print-directory unit

test-extras: $(VENV)/.dev $(VENV)/.bench $(VENV)/.interop $(VENV)/.browser
	$(BIN)/pytest -n 2 -m extras $(EXTRAS)
	@rm -rf .quick
	$(BIN)/python -m studies structure-regularisation --quick --tasks roles --out .quick --quiet

quick: lint
	$(BIN)/pytest -n 2 --hypothesis-profile quick $(QUICK)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Trellis needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# What users need, what developers need on top, and what benchmarks need on top.
$(VENV)/.user: pyproject.toml | $(BIN)/python
	@echo "installing trellis into $(VENV) …"
	@$(PIP) --no-compile -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.user
	@echo "installing the development tools …"
	@$(PIP) -e ".[dev]"
	@touch $@

$(VENV)/.bench: $(VENV)/.user
	@$(PIP) -e ".[bench]"
	@touch $@

$(VENV)/.interop: $(VENV)/.user
	@echo "installing the libraries that data may come from …"
	@$(PIP) -e ".[interop]"
	@touch $@

# A browser is no Python package: where it cannot be installed, its tests are skipped.
$(VENV)/.browser: $(VENV)/.user
	@echo "installing a browser for the tests of the demo …"
	@$(PIP) -e ".[browser]"
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } >/dev/null || \
	  echo "no Chromium: tests in a browser are skipped"
	@touch $@

# Where atheris cannot be installed, no attack is guided by coverage.
$(VENV)/.fuzz: $(VENV)/.user
	@$(PIP) -e ".[fuzz]" || true
	@touch $@

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

kernels: $(VENV)/.dev
	$(BIN)/trellis warmup

unit: $(VENV)/.dev
	$(BIN)/pytest -n 2

coverage: $(VENV)/.dev
	$(BIN)/pytest -n 2 --cov --cov-report term:skip-covered --cov-report html

demo: $(VENV)/.user
	@$(BIN)/trellis demo --out demo

# Attacks on files, inputs, the public interface and running processes; see fuzz/__init__.py.
MINUTES ?= 10
fuzz: $(VENV)/.dev $(VENV)/.fuzz
	$(BIN)/python -m fuzz --minutes $$(awk 'BEGIN { print $(MINUTES) / 2 }')
	$(BIN)/python -m fuzz.guided --minutes $$(awk 'BEGIN { print $(MINUTES) / 2 }')

bench: $(VENV)/.bench
	@set -e; for name in $(BENCHMARKS); do \
	  echo "benchmarks.$$name"; $(BIN)/python -m benchmarks.$$name; done

clean:
	rm -rf $(VENV) .quick .coverage* htmlcov demo build dist src/*.egg-info
