# Every target makes the virtual environment it needs, so `make demo` works in a fresh checkout.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check

# Stamps: what has been installed into the environment since pyproject.toml last changed.
DEMO  := $(VENV)/.installed-demo
KAFKA := $(VENV)/.installed-kafka
DEV   := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench

# Without the notice about the theme's successor.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs

# LONG=1 also runs the tests marked `long`.
PYTEST := $(PY) -m pytest $(if $(LONG),--long)
# Tests without Spark run side by side; tests that own a Spark session or kill processes do not.
# Some depend on when a machine gives threads and processes their turn: a test that fails is tried
# once more, and the summary names it as rerun. What a seed decides fails again.
RERUN := --reruns 1 -r fEsR
PARALLEL_TESTS := $(wildcard tests/unit tests/semantics tests/compat)
SERIAL_TESTS   := $(wildcard tests/spark tests/faults tests/integration)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-kafka test check lint format docs docs-serve bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO) ## run the demo
	@$(PY) -m penstock.demo

demo-kafka: $(KAFKA) ## run the demo with a real Kafka broker
	@$(PY) examples/demo_kafka.py

test: lint ## lint, types and all tests (LONG=1: also the long ones)
	$(PYTEST) $(PARALLEL_TESTS) $(RERUN) -n 2 --dist worksteal
	$(if $(SERIAL_TESTS),$(PYTEST) $(SERIAL_TESTS) $(RERUN))

check: lint ## lint, types and unit tests: run this before a commit
	$(PYTEST) tests/unit

lint: $(DEV)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy

format: $(DEV) ## format the code and apply safe lint fixes
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

docs: $(DEV) ## build the documentation into build/site
	$(MKDOCS) build --strict
	@echo "Open build/site/index.html"

docs-serve: $(DEV) ## show the documentation, and what you change in it, at localhost:8000
	$(MKDOCS) serve --strict

bench: $(BENCH) ## measure, and print the ratios to a plain Python loop
	$(PY) -m bench.keyed_count
	$(PY) -m bench.upi
	$(PY) -m bench.latency
	$(PY) -m bench.backpressure
	$(PY) -m bench.fairness
	$(PY) -m bench.recovery
	$(PY) -m bench.startup
	$(PY) -m bench.kafka_source
	$(PY) -m bench.kafka_upi
	$(PY) -m bench.kafka_visibility

clean: ## remove the environment, caches and everything built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis \
		spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
		echo "Penstock needs Python 3.10 or newer, and '$(PYTHON)' is not: run make PYTHON=/path/to/python3" >&2; \
		exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		rm -rf $(VENV); \
		echo "Cannot create $(VENV) with '$(PYTHON)': on Debian and Ubuntu, install python3-venv" >&2; \
		exit 1; }

# Exits 0 when JAVA_HOME or the PATH has Java 17 or newer.
FIND_JAVA = for java in "$${JAVA_HOME:+$$JAVA_HOME/bin/java}" java; do \
		version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
		[ "$${version:-0}" -ge 17 ] && exit 0; \
	done; exit 1

$(DEMO): pyproject.toml | $(PY)
	@echo "Installing Penstock and Spark into $(VENV) (once; a few minutes)"
	@if ($(FIND_JAVA)); then spec=.; else \
		echo "No Java 17 or newer found: installing one into $(VENV)"; spec='.[java]'; fi; \
	$(PIP) -e "$$spec"
	@touch $@

$(KAFKA): $(DEMO)
	@$(PIP) -e '.[kafka]'
	@touch $@

$(DEV): pyproject.toml | $(PY)
	@echo "Installing Penstock, Spark and the development tools into $(VENV) (once; a few minutes)"
	@$(PIP) -e '.[all,dev]'
	@touch $@ $(DEMO)

$(BENCH): pyproject.toml | $(PY)
	@echo "Installing Penstock, Spark and what the benchmarks need into $(VENV)"
	@$(PIP) -e '.[all,bench]'
	@touch $@ $(DEMO)
