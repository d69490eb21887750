# `make demo` and `make test` prepare what they need in .venv by themselves: Python 3.11 or later and a package index do.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint clean

help:
	@echo "make demo   certify real inputs: prints their totals, writes pages and pictures to out/"
	@echo "make test   run the tests"
	@echo "make lint   check style and types"
	@echo "make clean  remove .venv and what the demo wrote"

demo: .venv/.plot
	$(BIN)/python examples/demo.py

test: .venv/.test
	$(BIN)/python -m pytest -q -n 2

lint: .venv/.test
	$(BIN)/ruff check
	$(BIN)/pyright --warnings

clean:
	rm -rf .venv out

# One stamp an extra: installed again only when pyproject.toml changes.
.venv/.%: pyproject.toml | .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

.venv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed: make PYTHON=...")'
	$(PYTHON) -m venv $@ || { rm -rf $@; exit 1; }
