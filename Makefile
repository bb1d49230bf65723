# One-line targets. `make demo` and `make test` do their whole set-up on a machine with python3 (venv, pip) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GPU ?= $(shell cd benchmarks && ../$(BIN)/python -c 'from measuring import gpu_name; print(gpu_name())')
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1
unexport PYTHONDONTWRITEBYTECODE  # hundreds of processes would compile the same files

.PHONY: help demo quick test test-all test-part durations test-gpu coverage fuzz crash lint types docs site gallery bench bench-gpu clean

help:
	@echo "make WHAT, where WHAT is:"
	@sed -n '/^[a-z-]*:.* ## /s/:.* ## /\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.run ## the main job on the embedded data set: four losses, one model, one report
	$(BIN)/lossscope demo

quick: $(VENV)/.dev ## the tests that cost little, in a minute
	$(PYTEST) --quick

test: $(VENV)/.dev checks ## linters, types, the site and every test but thorough ones, in a quarter of an hour
	$(PYTEST) -m "not thorough"

test-all: $(VENV)/.models checks ## and all sizes, damages, moments of crashes, lines of the documentation, the tutorial, the wheel, browser pages
	$(PYTEST)

test-part: $(VENV)/.dev ## an eighth of what only test-all has: make test-part PART=3/8
	@test -n "$(PART)" || { echo "name a part: make test-part PART=3/8" >&2; exit 2; }
	$(PYTEST) --part $(PART)

durations: $(VENV)/.models ## run every test and write what each took to tests/durations.csv, which quick and the parts read
	$(PYTEST) --renew-durations
	$(PYTEST) --quick --renew-durations  # what takes longer where other tests come first

test-gpu: $(VENV)/.dev ## the GPU against the CPU
	@$(BIN)/python -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "a GPU must be there for `make test-gpu`; torch sees none")'
	LOSSSCOPE_TEST_DEVICE=cuda OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/gpu

coverage: $(VENV)/.models ## every test, and which lines none runs
	$(PYTEST) --cov --cov-report=term

crash: $(VENV)/.dev ## kills, signals, full disks: all moments of each command that writes
	$(PYTEST) tests/crash

fuzz: $(VENV)/.dev ## damaged files: all of each kind
	$(PYTEST) tests/fuzz

.PHONY: checks
checks: $(VENV)/.dev
	$(MAKE) --jobs 2 --output-sync --no-print-directory lint types site

lint: $(VENV)/.dev ## ruff, as CI runs it
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, as CI runs it
	$(BIN)/mypy --num-workers auto

docs: $(VENV)/.dev ## generated pages and the tutorial's outputs
	for page in errata objectives probes performance huge_sets intervals diff models commands doctor doctor_threads conformance audit tutorial; do $(BIN)/python docs/make_$$page.py || exit 1; done

site: $(VENV)/.dev ## the documentation: site/index.html
	$(BIN)/mkdocs build --quiet

gallery: $(VENV)/.dev ## the reports that are in the repository, an hour and a half
	$(BIN)/python studies/gallery.py

bench: $(VENV)/.run ## tables of docs/performance.md
	$(call measured,^if __name__,-e default=.cuda.,,.txt)

bench-gpu: $(VENV)/.run ## tables of a GPU, named after it
	@test -n "$(GPU)"
	$(call measured,"--device",,--device cuda,-$(GPU).txt)

# every script that has a line like $(1), none like $(2), and needs no option, is run with $(3); what it prints goes to results/NAME$(4)
define measured
set -e; mkdir -p benchmarks/results; for script in `grep -l -e '$(1)' benchmarks/*.py | xargs grep -L -e required=True $(2)`; do \
  to=benchmarks/results/`basename $$script .py`$(4); echo "$$script -> $$to"; \
  $(BIN)/python $$script $(3) > $$to.part || { rm -f $$to.part; exit 1; }; mv $$to.part $$to; \
done; $(BIN)/python docs/make_performance.py
endef

clean: ## remove what these targets made
	rm -rf $(VENV) build site *.egg-info .mypy_cache .ruff_cache .pytest_cache

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lossscope needs Python 3.11 or newer; got `$(PYTHON) --version`. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "$(PYTHON) has no venv with pip; on Debian or Ubuntu: apt-get install python3-venv. Or name another: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv --upgrade-deps $(VENV)  # the pip of Python 3.11 takes twice the time of today's

$(VENV)/.run: pyproject.toml setup.py constraints.txt | $(BIN)/pip
	$(BIN)/pip install -qq --no-compile -e .
	touch $@

$(VENV)/.dev: pyproject.toml setup.py constraints.txt | $(BIN)/pip
	$(BIN)/pip install -qq --no-compile -e ".[dev]"
	touch $@ $(VENV)/.run

$(VENV)/.models: $(VENV)/.dev
	$(BIN)/pip install -qq --no-compile --group models
	touch $@
