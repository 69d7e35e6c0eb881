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
	$(BIN)/trellis reproduce structure-regularisation --quick --tasks roles --out .quick --quiet

demo: $(VENV)/.user
	@$(BIN)/trellis demo --out demo

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/chunking.py
	$(BIN)/python benchmarks/passes.py --curves
	$(BIN)/python benchmarks/same_features.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/rich_edges.py
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/tree_marginals.py
	$(BIN)/python benchmarks/graph_inference.py
	$(BIN)/python benchmarks/ocr.py
	$(BIN)/python benchmarks/experts.py
	$(BIN)/python benchmarks/gcrf_scale.py
	$(BIN)/python benchmarks/glacer_swap.py
	$(BIN)/python benchmarks/tracking.py
	$(BIN)/python benchmarks/assignments.py
	$(BIN)/python benchmarks/active_step.py
	$(BIN)/python benchmarks/cccp.py

clean:
	rm -rf $(VENV) .quick demo build dist src/*.egg-info
