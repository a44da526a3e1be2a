# make demo  — set up and run the demonstration; ends with the path of its report
# make test  — set up, then lint, types, tests, doctests and every page of the documentation
# make docs  — set up, then follow every page of the documentation as a newcomer does
# make fuzz  — set up, then give assay thousands of damaged files, odd plans and odd networks: SEED=1 CASES=2000
# make fast  — set up, then lint, types of changed files and the tests without a marker: about a minute
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

unexport PYTHONDONTWRITEBYTECODE  # tests start many processes, which need not compile the package each

.PHONY: demo test fast fuzz lint types bench docs clean

# The pip that comes with an older Python takes twice as long to read what there is; where it cannot be replaced it does.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	-$(INSTALL) --upgrade pip
	$(INSTALL) --no-compile -e ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/assay demo --run runs/demo

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks docs reproductions
	$(BIN)/ruff format --check src tests benchmarks docs reproductions

types: $(READY)
	$(BIN)/mypy

# Types are checked by a test (tests/test_types.py), beside the others. Whole files go to processes, so that each fixture
# of a file is made once; the slow ones first (tests/conftest.py). Two processes more than there are cores, because many
# tests wait for processes and servers; 4 at most.
WORKERS := $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 3 ? cores + 2 : 4)))
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
MARKED := ray or kill or browser or slides or reproduction or hf or slow

test: lint
	$(PYTEST) src tests

fast: lint
	@changed=$$(git diff --name-only --diff-filter=d HEAD -- 'src/*.py'; git ls-files --others --exclude-standard -- 'src/*.py'); \
	if [ -n "$$changed" ]; then echo "$(BIN)/mypy" $$changed; $(BIN)/mypy $$changed; fi
	$(PYTEST) -m "not ($(MARKED))" tests

# Each failure is printed with the command that repeats it.
SEED ?= 1
CASES ?= 2000
fuzz: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/run.py --seed $(SEED) --cases $(CASES)

bench: $(READY)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs/report.png: demo
	$(BIN)/python docs/picture.py runs/demo/report.html

# What a newcomer follows: README, the tutorial, every page, block after block, each in a new folder.
docs: $(READY)
	$(BIN)/pytest tests/test_doc_pages.py tests/test_docs.py

clean:
	rm -rf $(VENV) build dist runs .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
