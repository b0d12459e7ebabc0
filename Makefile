# Plain venv and pip. `make demo` goes from a clean clone to a first survey; `make check test` is what CI runs.

# The first that runs and is new enough: a shim may exist without its Python.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# For a smaller torch without CUDA: make setup TORCH_ARGS="--index-url https://download.pytorch.org/whl/cpu"
TORCH_ARGS ?=
TORCH := torch==2.13.0
JOBS ?= 2
RUN ?= runs/demo

.PHONY: setup demo test check format bench docs clean help

help:
	@echo "make setup   virtual environment with every version pinned"
	@echo "make demo    first survey, of a small real model, and where its report lies"
	@echo "make test    tests (JOBS=$(JOBS) at a time)"
	@echo "make check   formatting, lint, types"
	@echo "make format  put formatting right"
	@echo "make bench   time and memory against the plain pass"
	@echo "make docs    reference of the commands, and the pages as a site in site/"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || test -n "$(PYTHON)" || { echo "Python 3.11 or newer must be installed, got none"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet $(TORCH_ARGS) "$(TORCH)"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e . --group dev
	touch $(READY)

demo: setup
	$(BIN)/gnomon survey --out $(RUN)
	@echo "run folder: $(RUN)"

test: setup
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python bench/capture.py

docs: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt --group docs
	$(BIN)/python scripts/command_reference.py docs/commands.md
	$(BIN)/python scripts/claims_reference.py docs/claims.md
	PYTHONPATH=. $(BIN)/python scripts/measure_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build site
