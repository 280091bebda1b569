# make demo | test | test-exhaustive | bench | bench-scaling | bench-losses | bench-apply | bench-registration DATA=dir | ablation | lint | format | build | docs | wheel | clean
# Everything runs in .venv, which the first target that needs it creates. Another Python: make PYTHON=python3.12 …
PYTHON ?= python3
BIN := .venv/bin
# The module for GPUs takes minutes to compile: only where one is to be seen, or REGNET_CUDA=ON says so.
export REGNET_CUDA ?= $(shell nvidia-smi -L >/dev/null 2>&1 && echo AUTO || echo OFF)
ARGS ?=
# One thread for each of several processes; the tests of the threads set their own number.
TESTS := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses=8 --dist worksteal

.PHONY: demo study test test-exhaustive bench bench-scaling bench-registration bench-apply bench-losses ablation lint format build docs wheel clean

demo: build
	$(BIN)/python tools/demo.py $(ARGS)

test: build
	$(TESTS) $(ARGS)

test-exhaustive: build
	$(TESTS) -m exhaustive $(ARGS)

study: build
	PATH="$(CURDIR)/$(BIN):$$PATH" bash tools/study.sh $(ARGS)

bench: build
	$(BIN)/python benchmarks/ops.py $(ARGS)

bench-scaling: build
	$(BIN)/python benchmarks/scaling.py $(ARGS)

bench-apply: build
	$(BIN)/python benchmarks/apply.py $(ARGS)

bench-losses: build
	$(BIN)/python benchmarks/losses.py $(ARGS)

ablation: build
	$(BIN)/python benchmarks/ablation.py --markdown ablation.md --json ablation.json $(ARGS)

bench-registration: build
	@test -n "$(DATA)" || { echo "say where the brains are: make bench-registration DATA=folder" >&2; exit 2; }
	$(BIN)/python benchmarks/registration.py $(DATA) $(ARGS)

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: build
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: .venv/.built

# A site in build/site, without the network; a broken link is an error.
docs: build
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir build/site

# A wheel and an sdist in dist/, tried in empty environments.
wheel: build
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[release]' --no-build-isolation
	bash tools/wheel.sh $(BIN)/python

clean:
	rm -rf .venv build demo

# The build tools come first: the editable install builds with those of .venv, so that a rebuild takes seconds.
# setuptools is for a dependency that PyPI has as a source only, and older ones would need another package for it.
.venv/.packages: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "regnet needs Python 3.10 or newer: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv .venv || { echo "no venv module: install your system's python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install -c constraints.txt setuptools scikit-build-core pybind11 cmake ninja
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation -e '.[dev]'
# It names packages that it needs only in the cloud, and a cloudpickle that is long past.
	$(BIN)/python -m pip install --no-deps hydra-ray-launcher==1.2.2
	@touch $@

.venv/.built: .venv/.packages $(shell find csrc -type f)
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@
