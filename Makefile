# Every target prepares the virtual environment it needs; a fresh machine needs make and Python 3.11 or later.
#   PYTHON   the interpreter to build environments from      make test PYTHON=python3.12
#   ARGS     passed on to pytest, or to the benchmark        make test ARGS="-k contour"

PYTHON ?= python3
ARGS ?=
VENV := .venv
BENCH := .venv-bench
PEERS := .venv-peers
LOWEST := .venv-lowest
PACKAGED := .venv-packaged
TORCH_PEERS := .venv-torch-peers
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo demo-scale demo-torch test test-fast test-integrations test-lowest test-repeats test-slow test-spark test-docs bench bench-accounting bench-accuracy bench-descent bench-intervals bench-packaged bench-scale bench-torch bench-torch-accuracy lint format docs clean
unexport PYTHONDONTWRITEBYTECODE # tests start many Pythons; each would compile all it imports anew
.NOTPARALLEL: # two pips in one environment would trip over each other

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

demo: $(VENV)/.with-plot ## price a training run end to end; figures in build/demo
	$(VENV)/bin/python examples/demo.py

demo-torch: $(VENV)/.with-test ## train a small network on digits privately, in PyTorch
	$(VENV)/bin/python examples/demo_torch.py

demo-scale: $(VENV)/.with-test ## ten million rows in memory, out of core and on Dask: the same bits
	$(VENV)/bin/python examples/demo_scale.py $(ARGS)

test: $(VENV)/.with-test ## all tests and doctests, minutes
	$(VENV)/bin/python -m pytest -n 2 $(ARGS)

test-fast: $(VENV)/.with-test ## the tests that catch a broken build, without doctests, under a minute
	$(VENV)/bin/python -m pytest -n 2 -m "not slow and not medium" \
		$(or $(ARGS),tests --ignore=tests/lectures --ignore=tests/theory --ignore=tests/accounting/theorems)

test-slow: $(VENV)/.with-test ## the long scans that `test` leaves out
	$(VENV)/bin/python -m pytest -n 2 -m slow $(ARGS)

test-repeats: $(VENV)/.with-test ## every example in the code that draws noise, 200 times with fresh noise
	$(VENV)/bin/python tests/repeat_examples.py $(ARGS)

test-lowest: $(LOWEST)/.installed ## the tests under the oldest versions that pyproject.toml allows; PyTorch aside
	$(LOWEST)/bin/python -m pytest -n 2 $(or $(ARGS),tests src --ignore=tests/torch --ignore=src/privet/torch)

test-integrations: $(VENV)/.with-integrations ## the examples for Lightning and Hugging Face, run and checked
	$(VENV)/bin/python -m pytest tests/torch/test_integrations.py $(ARGS)

test-spark: $(VENV)/.with-spark-test ## the contract of engines, on a Spark cluster of this machine; needs Java
	$(VENV)/bin/python -m pytest -m slow -rs tests/engines/test_spark.py $(ARGS)

test-docs: docs $(VENV)/.with-docs-test ## the built pages, opened in Chromium: names, formulas, links, widths, search
	$(VENV)/bin/python -m pytest -n 2 -m "slow or not slow" -rs tests/docs $(ARGS)

bench: bench-accounting bench-descent bench-accuracy bench-intervals bench-scale bench-torch bench-torch-accuracy ## all benchmarks

bench-accounting: $(BENCH)/.installed ## accounting against its peers; writes benchmarks/results/accounting.md
	$(BENCH)/bin/python benchmarks/accounting.py $(ARGS)

bench-descent: $(VENV)/.with-all ## private gradient descent; writes benchmarks/results/descent.md
	$(VENV)/bin/python benchmarks/descent.py $(ARGS)

bench-accuracy: $(VENV)/.with-plot $(PEERS)/.installed ## accuracy at the defaults; writes benchmarks/results/accuracy.md
	$(VENV)/bin/python benchmarks/accuracy.py $(ARGS)

bench-packaged: $(PACKAGED)/.installed ## accuracy on tables that packages carry, to choose settings by; only prints
	$(PACKAGED)/bin/python benchmarks/packaged.py $(ARGS)

bench-intervals: $(VENV)/.with-plot ## do confidence intervals cover? writes benchmarks/results/intervals.md
	$(VENV)/bin/python benchmarks/intervals.py $(ARGS)

bench-torch: $(VENV)/.with-test $(TORCH_PEERS)/.installed ## private steps of networks; writes benchmarks/results/torch.md
	$(VENV)/bin/python benchmarks/torch_steps.py $(ARGS)

bench-scale: $(VENV)/.with-test ## tables in files and on Dask; writes benchmarks/results/scale.md
	$(VENV)/bin/python benchmarks/scale.py $(ARGS)

bench-torch-accuracy: $(VENV)/.with-test $(TORCH_PEERS)/.installed ## a network on MNIST; writes benchmarks/results/torch-accuracy.md
	$(VENV)/bin/python benchmarks/torch_accuracy.py $(ARGS)

lint: $(VENV)/.with-lint ## style, formatting and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.with-lint ## rewrite the code in the house format
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: $(VENV)/.with-docs ## the documentation as static pages in build/site
	$(VENV)/bin/python -m sphinx --quiet --jobs 2 --fresh-env --fail-on-warning --keep-going -d build/doctrees docs build/site
	@! grep -rnE '<(script|link|img)[^>]*(src|href)="?(https?:)?//' --include='*.html' build/site \
		|| { echo "These pages would fetch from the network when read."; exit 1; }
	@echo "Read build/site/index.html"

clean: ## remove what the targets made, environments included
	rm -rf $(VENV) $(LOWEST) $(BENCH) $(PACKAGED) $(PEERS) $(TORCH_PEERS) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.with-%: pyproject.toml | $(VENV)/.created
	$(VENV)/bin/python $(PIP_INSTALL) --editable ".[$*]"
	@touch $@

$(BENCH)/.installed: pyproject.toml benchmarks/requirements-accounting.txt | $(BENCH)/.created
	$(BENCH)/bin/python $(PIP_INSTALL) --editable . --requirement benchmarks/requirements-accounting.txt
	@touch $@

$(LOWEST)/.installed: pyproject.toml .ci/lowest.py | $(LOWEST)/.created
	@mkdir -p build
	$(LOWEST)/bin/python .ci/lowest.py plot tables fast dask test --without torch > build/lowest.txt
	$(LOWEST)/bin/python $(PIP_INSTALL) --requirement build/lowest.txt
	$(LOWEST)/bin/python $(PIP_INSTALL) --no-deps --editable .
	@touch $@

$(PEERS)/.installed: benchmarks/requirements-peers.txt | $(PEERS)/.created
	$(PEERS)/bin/python $(PIP_INSTALL) --requirement benchmarks/requirements-peers.txt
	@touch $@

$(PACKAGED)/.installed: pyproject.toml benchmarks/requirements-packaged.txt | $(PACKAGED)/.created
	$(PACKAGED)/bin/python $(PIP_INSTALL) --editable ".[tables]"
	$(PACKAGED)/bin/python $(PIP_INSTALL) --no-deps --requirement benchmarks/requirements-packaged.txt
	@touch $@

$(TORCH_PEERS)/.installed: benchmarks/requirements-torch-peers.txt | $(TORCH_PEERS)/.created
	$(TORCH_PEERS)/bin/python $(PIP_INSTALL) --requirement benchmarks/requirements-torch-peers.txt
	@touch $@

# A stamp of its own, because a venv that failed half-way leaves a python without pip behind.
$(VENV)/.created $(LOWEST)/.created $(BENCH)/.created $(PACKAGED)/.created $(PEERS)/.created $(TORCH_PEERS)/.created: %/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is not Python 3.11 or later; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $*
	@touch $@
