# make run, make test, ...: tutorial/tasks.py says what there is, and works without make, too.
# Another Python: make run PYTHON=python3.12. Options for the program behind: OPTIONS="...".

PYTHON ?= python3
TASKS := run demo test test-extras lab lint experiments study watch pdf site pictures bench constraints clean
NAMES := $(filter-out help $(TASKS),$(MAKECMDGOALS))# what follows a command: make watch runs/default/seed0

.PHONY: help $(TASKS) $(NAMES)

help:
	@$(PYTHON) -m tutorial.tasks help

$(TASKS):
	@$(PYTHON) -m tutorial.tasks $@ $(NAMES) $(OPTIONS)

ifneq ($(filter $(TASKS),$(MAKECMDGOALS)),)
$(NAMES):
	@:
else
$(NAMES): # no command: say so
	@$(PYTHON) -m tutorial.tasks $@
endif
