# accelviz: everything a newcomer needs is one word after `make`.
#
#   make demo         install into .venv, then plan and check an SpMM on a real graph
#   make test         install, then run the tests (no GPU needed)
#   make lab          install, then open JupyterLab on the first lesson
#   make docs         install, then run lessons and puzzles and write the site to build/site/
#   make course       install with what releases and grades assignments
#   make install      install only
#   make page         build the explorer's page (accelviz/widgets/dist) from its sources with Node
#
# With an NVIDIA GPU, say CUDA=13 (or CUDA=12) once, as in `make demo CUDA=13`: it adds CuPy.

VENV ?= .venv
BIN := $(VENV)/bin

# The first interpreter that is new enough and that Numba supports.
PYTHON ?= $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 16))' 2>/dev/null \
	&& { echo $$p; break; }; done)

# CUDA is remembered in the environment, so that it need be said only once.
CUDA ?= $(shell cat $(VENV)/.cuda 2>/dev/null)
ifneq ($(filter-out 12 13,$(CUDA)),)
$(error CUDA=$(CUDA) is not known; say CUDA=12 or CUDA=13, the major version of your driver)
endif

# The libraries of CUDA 12 and 13 exclude each other, so there are two lock files.
LOCK := requirements$(if $(filter 12,$(CUDA)),-cuda12).lock
OTHER_CUPY := cupy-cuda$(if $(filter 12,$(CUDA)),13,12)x

# What each goal needs of pyproject.toml's extras.
GPU := $(addprefix cuda,$(CUDA))
EXTRAS_base := $(GPU)
EXTRAS_test := test docs $(or $(GPU),nvrtc)
EXTRAS_lab := lab $(GPU)
EXTRAS_course := lab course $(GPU)
EXTRAS_docs := lab docs
EXTRAS_dev := dev

empty :=
space := $(empty) $(empty)
comma := ,
bracketed = $(if $(strip $(1)),[$(subst $(space),$(comma),$(strip $(1)))])

# pip takes every version from the lock file; the extras only say how much of it to install.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
READY := $(VENV)/.ready$(CUDA)-

.DEFAULT_GOAL := help
.PHONY: help demo test lab course docs install page check format lock clean

help:
	@sed -n '3,11s/^# \{0,1\}//p' Makefile

demo: $(READY)base
	@$(BIN)/accelviz demo $(ARGS)

# Many processes import what is compiled once, even where PYTHONDONTWRITEBYTECODE is set.
test: $(READY)test
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

lab: $(READY)lab
	@$(BIN)/jupyter lab --notebook-dir=. $(ARGS) \
		--LabApp.default_url=/lab/tree/$(firstword $(sort $(wildcard notebooks/*.ipynb)))

course: $(READY)course
	@echo "'$(BIN)/accelviz assignments' can release and grade. docs/instructors.md says how."

# What a notebook shows is stored in build/notebooks/ by the text of its cells; remove that folder
# to run all of them again.
docs: $(READY)docs
	@test -d build/notebooks || echo "The first time, all notebooks are run: about five minutes on" \
		"two processors. Later, only changed ones are."
	@rm -rf build/site  # pages of notebooks that have another name now
	@$(BIN)/python -m sphinx -W --keep-going -c docs/site -d build/doctrees $(ARGS) . build/site
	@echo "Begin with build/site/index.html."

install: $(READY)base
	@echo "accelviz is installed in $(VENV). 'make demo' shows it at work."

NOTEBOOKS = notebooks/*.ipynb notebooks/electives/*.ipynb notebooks/puzzles/*.ipynb \
	notebooks/assignments/*/*.ipynb accelviz/course/assignments/*/*.ipynb

# The bundles are committed: only who changes src/ and `make check` need Node.
PAGE := accelviz/widgets
NODE_MODULES := $(PAGE)/node_modules/.package-lock.json

page: $(NODE_MODULES)
	@npm --prefix $(PAGE) run --silent build

$(NODE_MODULES): $(PAGE)/package-lock.json
	@command -v npm >/dev/null || { echo "accelviz's page needs Node 20 or newer, with npm," \
		"to be checked and built; there is none on PATH."; exit 1; }
	@npm --prefix $(PAGE) ci --silent

check: $(READY)dev $(NODE_MODULES)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/words.py
	$(BIN)/mypy
	$(BIN)/nbstripout --keep-id --verify $(NOTEBOOKS)
	$(BIN)/clang-format --dry-run --Werror kernels/*.cuh kernels/*/*.cu*
	npm --prefix $(PAGE) run --silent check

format: $(READY)dev $(NODE_MODULES)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/nbstripout --keep-id $(NOTEBOOKS)
	$(BIN)/clang-format -i kernels/*.cuh kernels/*/*.cu*
	npm --prefix $(PAGE) run --silent format

# Renews the exact versions; run it after changing the dependencies in pyproject.toml.
COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --upgrade --quiet \
	--no-annotate --custom-compile-command "make lock" --extra lab --extra test --extra dev --extra docs --extra emulator
lock: $(READY)dev
	$(COMPILE) --extra nvrtc --extra cuda13 --output-file requirements.lock
	$(COMPILE) --extra cuda12 --output-file requirements-cuda12.lock

clean:
	rm -rf $(VENV) build dist

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "accelviz needs Python 3.11 or newer and found none." \
		"Install one, or name it: make PYTHON=/path/to/python3.12 demo"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Could not make $(VENV)." \
		"On Debian and Ubuntu, 'apt install python3-venv' brings what is missing."; exit 1; }

# A stamp for each set of extras, renewed when the lock file or pyproject.toml changes.
$(READY)%: $(LOCK) pyproject.toml | $(BIN)/python
	@echo "Installing accelviz$(call bracketed,$(EXTRAS_$*)) into $(VENV) from $(LOCK) ..."
	@$(PIP) install --constraint $(LOCK) hatchling editables
	@$(if $(CUDA),$(PIP) uninstall --yes $(OTHER_CUPY) 2>/dev/null && echo $(CUDA) > $(VENV)/.cuda)
	@$(PIP) install --constraint $(LOCK) --no-build-isolation \
		--editable ".$(call bracketed,$(EXTRAS_$*))"
	@touch $@
