# make run    install into .venv, run the whole notebook, say where the results are
# make test   the same environment, then the tests and the notebook's checked outputs
# make test-extras   installs Ray, ONNX and Selenium too, and runs the tests that need them
# make lab    open the notebook in JupyterLab
# make lint   check the style of code and notebook
# make experiments   train what the report draws from and is not kept yet
# make pdf    print the executed notebook (needs Chromium or Chrome)
# make pictures   draw the arms of README and notebook from kept weights; the curve is the notebook's
# make watch  write runs/watch.html, arms to look around at: make watch RUN=runs/default/seed0
# make clean  remove .venv and runs, with all trainings that are in it
# make bench  measure against other people's code (hours) and write doc/benchmarks.md

PYTHON ?= python3
BIN := .venv/bin
NOTEBOOK := Continuous_Control.ipynb
READY := .venv/ready

.PHONY: run test test-extras lab lint pdf experiments bench pictures watch clean

run: $(READY)
	mkdir -p runs
	$(BIN)/papermill $(NOTEBOOK) runs/$(NOTEBOOK) --kernel python3 --no-progress-bar --stdout-file -
	$(BIN)/jupyter nbconvert --log-level WARN --to html runs/$(NOTEBOOK)
	@echo
	@echo "executed notebook  runs/$(NOTEBOOK)"
	@echo "the same as HTML   runs/$(NOTEBOOK:.ipynb=.html)"
	@run=$$(dirname $$(ls -t runs/*/*/scores.csv | head -n 1)); \
	    echo "scores, weights    $$run/"; \
	    echo "arms to look at    $$($(BIN)/python -m reacher.watch $$run)"

test: $(READY)
	$(BIN)/python -m pytest -q tests --nbval-lax --nbval-current-env --nbval-cell-timeout=1800 $(NOTEBOOK)

test-extras: $(READY)
	$(BIN)/python -m pip install --disable-pip-version-check -q -r benchmarks/requirements-ray.txt -r benchmarks/requirements-onnx.txt -r tests/requirements-browser.txt
	$(BIN)/python -m pytest -q tests/test_experiments.py tests/test_export.py tests/test_page.py

lab: $(READY)
	$(BIN)/jupyter lab $(NOTEBOOK)

lint: $(READY)
	$(BIN)/ruff check .

pdf: $(READY)
	$(BIN)/python doc/print.py

experiments: $(READY)
	$(BIN)/python -m benchmarks.experiments

bench: .venv/bench/ready
	.venv/bench/bin/python -m benchmarks

.venv/bench/ready: $(READY) requirements.txt benchmarks/requirements.txt
	$(PYTHON) -m venv .venv/bench
	.venv/bench/bin/python -m pip install --disable-pip-version-check -q -r benchmarks/requirements.txt
	touch $@

pictures: $(READY)
	$(BIN)/python doc/pictures.py
	$(BIN)/python doc/arm_pictures.py

RUN ?= checkpoints/default/seed0
WATCH ?=

watch: $(READY)
	$(BIN)/python -m reacher.watch $(RUN) $(WATCH)

clean:
	rm -rf .venv runs

$(READY): requirements.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 10) <= v <= (3, 13) else \
	    f"Python {v[0]}.{v[1]} found, 3.10 to 3.13 needed; choose one by make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps unityagents==0.4.0
	touch $(READY)
