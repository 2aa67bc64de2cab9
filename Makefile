# Every target makes the virtual environment it needs, so `make demo` works in a fresh checkout.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python

# Every package gets the version that the lock file names, those that build packages too (older pips
# read the first variable for both).
LOCK := requirements.lock
PIP  := PIP_CONSTRAINT=$(LOCK) PIP_BUILD_CONSTRAINT=$(LOCK) \
	$(PY) -m pip install --quiet --disable-pip-version-check

# Stamps: what has been installed into the environment since these files last changed.
NEEDS := pyproject.toml $(LOCK)
DEMO  := $(VENV)/.installed-demo
KAFKA := $(VENV)/.installed-kafka
DEV   := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench
QUICK := $(VENV)/.quick-java

# Without the notice about the theme's successor.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs

# Tests run in so many processes, each with a Spark session and servers of its own.
LANES ?= 2
PYTEST := $(PY) -m pytest -n $(LANES) --dist loadgroup --durations 15

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-kafka test test-all test-rest check lint format docs docs-serve bench lock mutants clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO) ## run the demo
	@$(PY) -m penstock.demo

demo-kafka: $(KAFKA) ## run the demo with a real Kafka broker
	@$(PY) examples/demo_kafka.py

test: lint $(QUICK) ## lint, types and the tests that say whether it works here: ten minutes
	$(PYTEST)

test-all: ## every test: also kills, clusters, servers (LONG=1: also repetition for its own sake)
	$(MAKE) test
	$(MAKE) test-rest

test-rest: $(QUICK) ## what test-all has besides test
	$(PYTEST) --rest $(if $(LONG),--long)

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

# The lock file may be what keeps the rest from being installed, so uv is all that this needs.
lock: | $(PY) ## renew the versions that everything is installed in
	@$(PIP) uv
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(PY) -m uv pip compile --quiet --upgrade --all-extras \
		--universal --python-version 3.10 --no-annotate --no-emit-index-url \
		--output-file $(LOCK) pyproject.toml

mutants: $(DEV) ## put mistakes into a module, see which test notices: MODULE=runtime/gate.py COUNT=20 SEED=3
	$(PY) tests/mutants $(MODULE) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

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

$(DEMO): $(NEEDS) | $(PY)
	@echo "Installing Penstock and Spark into $(VENV) (once; a few minutes)"
	@if ($(FIND_JAVA)); then spec=.; else \
		echo "No Java 17 or newer found: installing one into $(VENV)"; spec='.[java]'; fi; \
	$(PIP) -e "$$spec"
	@touch $@

$(KAFKA): $(DEMO)
	@$(PIP) -e '.[kafka]'
	@touch $@

$(DEV): $(NEEDS) | $(PY)
	@echo "Installing Penstock, Spark and the development tools into $(VENV) (once; a few minutes)"
	@$(PIP) -e '.[all,dev]'
	@touch $@ $(DEMO)

# What lets the JVMs of tests start in less time.
$(QUICK): $(DEV) tests/quick_java.py
	@$(PY) tests/quick_java.py
	@touch $@

$(BENCH): $(NEEDS) | $(PY)
	@echo "Installing Penstock, Spark and what the benchmarks need into $(VENV)"
	@$(PIP) -e '.[all,bench]'
	@touch $@ $(DEMO)
