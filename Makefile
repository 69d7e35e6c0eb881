# `make test` and `make demo` set up everything they need in .venv on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: test lint types kernels unit demo bench clean

# Types are checked while the kernels compile.
test: lint
	@$(MAKE) --no-print-directory -j2 types kernels
	@$(MAKE) --no-print-directory unit

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Trellis needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# What users need, what developers need on top, and what benchmarks need on top.
$(VENV)/.user: pyproject.toml | $(BIN)/python
	@echo "installing trellis into $(VENV) …"
	@$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.dev: $(VENV)/.user
	@echo "installing the development tools …"
	@$(PIP) -e ".[dev]"
	@touch $@

$(VENV)/.bench: $(VENV)/.user
	@$(PIP) -e ".[bench]"
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
	@rm -rf .quick
	$(BIN)/python -m studies structure-regularisation --quick --tasks roles --out .quick --quiet

demo: $(VENV)/.user
	@$(BIN)/trellis demo --out demo

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.chunking
	$(BIN)/python -m benchmarks.passes --curves
	$(BIN)/python -m benchmarks.same_features
	$(BIN)/python -m benchmarks.footprint
	$(BIN)/python -m benchmarks.large
	$(BIN)/python -m benchmarks.rich_edges
	$(BIN)/python -m benchmarks.solvers
	$(BIN)/python -m benchmarks.threads
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.tree_marginals
	$(BIN)/python -m benchmarks.graph_inference
	$(BIN)/python -m benchmarks.ocr
	$(BIN)/python -m benchmarks.experts
	$(BIN)/python -m benchmarks.gcrf_scale
	$(BIN)/python -m benchmarks.glacer_swap
	$(BIN)/python -m benchmarks.tracking
	$(BIN)/python -m benchmarks.assignments
	$(BIN)/python -m benchmarks.active_step
	$(BIN)/python -m benchmarks.cccp

clean:
	rm -rf $(VENV) .quick demo build dist src/*.egg-info
