# make help says what there is; tutorial/commands.py does it, and works without make, too.
# Another Python, before .venv is there: make run PYTHON=python3.12.
# Options of a command: make run OPTIONS="-p seed 3".

PYTHON ?= python3
ifneq ($(findstring p,$(firstword -$(MAKEFLAGS))),)
$(info make keeps -p for itself: try make run OPTIONS="-p NAME VALUE")
$(shell kill $$PPID)  # an error would be followed by what -p prints, a thousand lines
endif
WORDS := $(or $(MAKECMDGOALS),help)
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ifneq ($(filter-out PYTHON OPTIONS,$(GIVEN)),)
$(error $(filter-out PYTHON OPTIONS,$(GIVEN)) is no option of make: try OPTIONS="-p NAME VALUE")
endif

.PHONY: $(WORDS)
$(firstword $(WORDS)):
	@$(PYTHON) -m tutorial.commands $(WORDS) $(OPTIONS)
$(wordlist 2,99,$(WORDS)):
	@:
