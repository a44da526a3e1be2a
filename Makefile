# make demo  — set up and run the demonstration; ends with the path of its report
# make test  — set up, then lint, types, tests and doctests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types bench docs clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/assay demo --run runs/demo

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks docs reproductions
	$(BIN)/ruff format --check src tests benchmarks docs reproductions

types: $(READY)
	$(BIN)/mypy

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --doctest-glob="*.md" src tests docs README.md

bench: $(READY)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs/report.png: demo
	$(BIN)/python docs/picture.py runs/demo/report.html

docs: $(READY)
	$(BIN)/pytest --doctest-glob="*.md" docs README.md

clean:
	rm -rf $(VENV) build dist runs .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
