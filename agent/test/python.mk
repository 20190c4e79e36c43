# The agent in real interpreters, and the offset tables against the headers present.
PYTHON ?= python3
.PHONY: check-python
check-python: $(BUILD)/libtidemark.so $(BUILD)/layout
	$(PYTHON) layouts/generate.py --check
	$(PYTHON) test/python_check.py $(BUILD)/libtidemark.so $(BUILD)/layout
