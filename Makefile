# The commands of this project, for Linux and macOS. Each first makes .venv and installs into it.
#
#   make run       run the whole notebook into run_<time>.ipynb and .html; says where all results are
#   make demo      write runs/watch.html, in which a trained agent acts
#   make lab       open a copy of the notebook in JupyterLab, my_copy.ipynb
#   make watch     as demo, but the page begins with an agent that learns
#   make site      write README, notebooks and pages of doc/ as a web site into _site/html/
#   make pictures  draw the pictures of README and notebook from stored weights and scores
#   make test      the tests and the notebook's checked outputs; says why one is skipped
#   make lint      check the style of code and notebook, and the types
#
# Options of the program behind a command: make run OPTIONS="-p seed 3"
# Another Python, before .venv is there:   make run PYTHON=python3.12

PYTHON ?= python3
PY = .venv/bin/python
INSTALL = $(PY) -m pip --disable-pip-version-check install
CPU = https://download.pytorch.org/whl/cpu# whose torch is 3 GB smaller than PyPI's on Linux
WATCH = $(PY) -m reacher_page.watch
COPY = my_copy.ipynb

ifneq ($(findstring p,$(firstword -$(MAKEFLAGS))),)
$(info make keeps -p for itself: try make run OPTIONS="-p NAME VALUE")
$(shell kill $$PPID)  # an error would be followed by what -p prints, a thousand lines
endif
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ifneq ($(filter-out PYTHON OPTIONS,$(GIVEN)),)
$(error $(filter-out PYTHON OPTIONS,$(GIVEN)) is no option of make: try OPTIONS="-p NAME VALUE")
endif
ifeq ($(origin PYTHON),command line)
OTHER := $(shell test ! -e $(PY) || test "`$(PY) -V`" = "`$(PYTHON) -V`" || $(PY) -V)
ifneq ($(OTHER),)
$(error .venv has $(OTHER): remove the folder .venv before PYTHON=$(PYTHON))
endif
endif

.PHONY: help run demo lab watch site pictures test lint
help:
	@awk '/^#/ {print substr($$0, 3); next} {exit}' Makefile
run demo lab watch pictures: .venv/requirements.ready
site test lint: .venv/requirements-dev.ready

run:
	@$(PY) -m tutorial.execute $(OPTIONS)
demo:
	@$(WATCH) $(OPTIONS)
watch:
	@$(WATCH) --agent helpers:quick_agent $(OPTIONS)
lab:  # JupyterLab removes the pages in outputs of a notebook that is not trusted
	@if test -e $(COPY); then echo "opening $(COPY) as it was left; remove it for a new copy"; \
	    else cp Continuous_Control.ipynb $(COPY) && $(PY) -m jupyter trust $(COPY); fi
	@JUPYTER_CONFIG_PATH="$(CURDIR)/tutorial/jupyter$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}" \
	    $(PY) -m jupyterlab $(COPY) $(OPTIONS)
site:  # without a network; a link between pages that leads nowhere is an error
	$(PY) -m sphinx -q -W -c doc -d _site/doctrees . _site/html $(OPTIONS)
	cp _site/html/README.html _site/html/index.html
	$(WATCH) --agent helpers:quick_agent --out _site/html/play.html --tutorial index.html
	@echo "the site begins at $(CURDIR)/_site/html/index.html"
pictures:
	$(PY) -m doc.pictures
test:  # all but those of research, on all cores, each file on one; threads would only wait
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -rs -n logical --dist loadfile --no-loadscope-reorder \
	    --nbval-lax --nbval-current-env --nbval-cell-timeout=600 Continuous_Control.ipynb tests packages $(OPTIONS)
lint:
	$(PY) -m ruff check . $(OPTIONS)
	$(PY) -m ruff format --check -q .
	$(PY) -m mypy

NEEDED = import sys; found = sys.version_info[:2]; (3, 11) <= found <= (3, 14) or sys.exit( \
    "Python %d.%d found, 3.11 to 3.14 needed; choose one by make PYTHON=python3.12" % found)
.venv/requirements-dev.ready: .venv/requirements.ready
.venv/%.ready: %.txt $(wildcard packages/*/pyproject.toml)
	@test -e $(PY) || $(PYTHON) -c '$(NEEDED)'
	@echo "installing into .venv, 2.4 GB: two to four minutes"
	@test -e .venv/bin/pip || $(PYTHON) -m venv .venv
	@test `uname` != Linux || $(INSTALL) -q --no-deps --retries 0 --timeout 10 --index-url $(CPU) \
	    `grep -o '^torch==[0-9.]*' requirements.txt` 2> /dev/null || true
	$(INSTALL) -r $<
	$(INSTALL) --no-deps unityagents==0.4.0
	@touch $@
