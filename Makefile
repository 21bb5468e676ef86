# Everything happens in $(VENV): no root, no ImageMagick. Another interpreter: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV ?= .venv
# How many of the eight photographs `make demo` turns into sequences, ten of each.
SEQUENCES ?= 6

export PYTHON VENV
# Each process that a test starts would compile the package again.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin
# A copy without the wing `related`.
CORE := $(CURDIR)/build/core
# The oldest releases that pyproject.toml admits, in an environment of their own.
LOWEST := build/lowest
# One process more than cores, because some tests wait for others; the tests of a file share what they make.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# A trained network, which nothing else needs.
SCORE := build/score

.DEFAULT_GOAL := help
.PHONY: help demo demo-score test test-all test-slow test-some test-core test-lowest test-opencv lint format docs site wheel bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## Write out/demo-c and out/demo-p from built-in photographs
	$(BIN)/robustgen make-c --dataset demo
	$(BIN)/robustgen make-p --dataset demo --limit $(SEQUENCES)
	@$(BIN)/robustgen report out/demo-c >/dev/null
	@$(BIN)/robustgen report out/demo-p >/dev/null
	@echo "Open out/demo-c-report.html and out/demo-p-report.html in a browser."

demo-score: $(SCORE)/.installed-score ## Score a real ImageNet classifier on C and P sets of twenty photographs
	$(SCORE)/bin/python scripts/demo_score.py

test: $(VENV)/.installed-test ## Run the tests that a change is likely to break, in six minutes
	$(BIN)/robustgen warm
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

test-all: test test-slow ## Run all tests

test-slow: $(VENV)/.installed-test ## Run the tests that `make test` leaves out
	$(BIN)/python -m pytest $(PARALLEL) -m slow

test-some: $(VENV)/.installed-test ## Run the fast ones of TESTS=FILES
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(TESTS)

# The tests of the core run in a copy from which that wing has been removed; the pages describe both.
test-core: $(VENV)/.installed-test ## Run `make test` with the core alone, and then with the wing related
	$(BIN)/robustgen warm
	rm -rf $(CORE)
	mkdir -p $(CORE)
	git ls-files -z -- . ':!robustgen/related' ':!tests/related' | xargs -0 cp --parents --target-directory $(CORE)
	cd $(CORE) && PYTHONPATH=$(CORE) $(abspath $(BIN))/python -m pytest $(PARALLEL) -m "not slow" --ignore=tests/test_docs.py --ignore=tests/test_docs_reference.py
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" tests/related tests/test_docs.py tests/test_docs_reference.py

# The reference is written with the newest releases.
test-lowest: $(LOWEST)/.installed-test ## Run `make test` with the oldest supported releases (scripts/lowest.txt)
	$(LOWEST)/bin/robustgen warm
	$(LOWEST)/bin/python -m pytest $(PARALLEL) -m "not slow" --ignore-glob="*/test_docs*.py"

test-opencv: $(VENV)/.installed ## Write the demo set with three releases of OpenCV: the same digest
	scripts/test_opencv.sh

lint: $(VENV)/.installed-dev ## Check style and types: ruff, mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.installed-dev ## Format the code, and repair what ruff can repair
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.installed ## Write the reference of configs, flags and files again
	$(BIN)/python scripts/docs_reference.py

site: $(VENV)/.installed-site ## Build the pages of docs/ and the gallery as build/site-html
	$(BIN)/mkdocs build --quiet

wheel: $(VENV)/.installed ## Write a wheel with compiled loops for this Python, and its constraints file, into dist/
	$(BIN)/python scripts/build_wheel.py

bench: $(VENV)/.installed-test ## Measure the speed of every corruption, into a file that scripts/bench.py --compare reads
	mkdir -p build
	$(BIN)/python scripts/bench.py --json build/bench-$$(git describe --always --dirty).json

clean: ## Remove caches, builds and the outputs of demo and smoke runs, but not .venv
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf out/demo-c out/demo-p out/demo-score out/smoke-c out/smoke-p
	find robustgen tests scripts -name __pycache__ -prune -exec rm -rf {} +

# --- environments --------------------------------------------------------------------------------

$(VENV)/.installed: pyproject.toml scripts/setup.sh
	scripts/setup.sh
	touch $@

$(VENV)/.installed-test: pyproject.toml scripts/setup.sh
	scripts/setup.sh test,timm
	touch $(VENV)/.installed $@

$(VENV)/.installed-dev: pyproject.toml scripts/setup.sh
	scripts/setup.sh dev,timm
	touch $(VENV)/.installed $(VENV)/.installed-test $@

$(VENV)/.installed-site: pyproject.toml scripts/setup.sh
	scripts/setup.sh test,site
	touch $(VENV)/.installed $(VENV)/.installed-test $@

$(LOWEST)/.installed-test: pyproject.toml scripts/setup.sh scripts/lowest.txt
	VENV=$(LOWEST) UV_CONSTRAINT=scripts/lowest.txt scripts/setup.sh test
	touch $@

$(SCORE)/.installed-score: pyproject.toml scripts/setup.sh scripts/demo-score-requirements.txt
	VENV=$(SCORE) scripts/setup.sh onnx,plot
	$(SCORE)/bin/python -m pip --disable-pip-version-check --quiet install -r scripts/demo-score-requirements.txt
	touch $@
