# make run, make test, ...: tutorial/tasks.py says what there is, and works without make, too.
# Another Python: make run PYTHON=python3.12. Options for the program behind: OPTIONS="...".

PYTHON ?= python3
TASKS := run demo test test-extras lab lint experiments study watch pdf pictures bench constraints clean

.PHONY: help $(TASKS)

help:
	@$(PYTHON) -m tutorial.tasks || true

$(TASKS):
	@$(PYTHON) -m tutorial.tasks $@ $(OPTIONS)
