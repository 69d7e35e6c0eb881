# `make test` and `make demo` set up everything they need in .venv on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: test lint types unit demo bench docs-figures clean

test: lint types unit

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing trellis and its tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/trellis warmup
	$(BIN)/pytest -n 2

demo: $(STAMP)
	@$(BIN)/trellis warmup
	@$(BIN)/trellis demo --out demo

bench: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python benchmarks/chunking.py

clean:
	rm -rf $(VENV) demo build dist src/*.egg-info
