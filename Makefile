# One-line targets. `make demo` and `make test` do their whole set-up on a machine with python3 (venv, pip) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GPU ?= $(shell cd benchmarks && ../$(BIN)/python -c 'from measuring import gpu_name; print(gpu_name())')
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test test-gpu coverage quick fuzz crash lint types docs site gallery bench bench-gpu clean

demo: $(VENV)/.run ; $(BIN)/lossscope demo

test: $(VENV)/.dev
	$(MAKE) --jobs 2 --output-sync --no-print-directory lint types site
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-gpu: $(VENV)/.dev
	@$(BIN)/python -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "a GPU must be there for `make test-gpu`; torch sees none")'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m gpu tests/gpu

coverage: $(VENV)/.dev ; OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --cov --cov-report=term

quick: $(VENV)/.dev ; OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow"

crash: $(VENV)/.dev ; $(BIN)/python -m tests.crash --moments 20 --jobs 2

fuzz: $(VENV)/.dev ; OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --total 20000 --jobs 2

lint: $(VENV)/.dev ; $(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.dev ; $(BIN)/mypy

docs: $(VENV)/.dev ; for page in errata objectives probes performance huge_sets intervals diff models commands doctor doctor_threads conformance audit tutorial; do $(BIN)/python docs/make_$$page.py || exit 1; done

site: $(VENV)/.dev ; $(BIN)/mkdocs build --quiet

gallery: $(VENV)/.dev ; $(BIN)/python studies/gallery.py

bench: $(VENV)/.run ; $(call measured,^if __name__,-e default=.cuda.,,.txt)

bench-gpu: $(VENV)/.run
	@test -n "$(GPU)"
	$(call measured,"--device",,--device cuda,-$(GPU).txt)

# every script that has a line like $(1), none like $(2), and needs no option, is run with $(3); what it prints goes to results/NAME$(4)
define measured
set -e; mkdir -p benchmarks/results; for script in `grep -l -e '$(1)' benchmarks/*.py | xargs grep -L -e required=True $(2)`; do \
  to=benchmarks/results/`basename $$script .py`$(4); echo "$$script -> $$to"; \
  $(BIN)/python $$script $(3) > $$to.part || { rm -f $$to.part; exit 1; }; mv $$to.part $$to; \
done; $(BIN)/python docs/make_performance.py
endef

clean: ; rm -rf $(VENV) build site *.egg-info .mypy_cache .ruff_cache .pytest_cache

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lossscope needs Python 3.11 or newer; got `$(PYTHON) --version`. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "$(PYTHON) has no venv with pip; on Debian or Ubuntu: apt-get install python3-venv. Or name another: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml setup.py constraints.txt | $(BIN)/pip
	$(BIN)/pip install --quiet -e .
	touch $@

$(VENV)/.dev: pyproject.toml setup.py constraints.txt | $(BIN)/pip
	$(BIN)/pip install --quiet -e ".[dev]"
	touch $@ $(VENV)/.run
