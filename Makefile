# make help says what there is; tutorial/commands.py does it, and works without make, too.
# Another Python: make run PYTHON=python3.12. Options of a command: make run OPTIONS="-p seed 3".

PYTHON ?= python3
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
