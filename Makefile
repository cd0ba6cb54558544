# Every target makes what it needs: a fresh machine has Python 3.11 or later and make.

PYTHON ?= python3
ARGS ?=
WORKERS ?= auto

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env demo test lint format mutations bench bench-sandbox reference humaneval coverage lock clean

# The project's own uv and the interpreter named here, whatever else the shell has active.
unexport VIRTUAL_ENV
export UV_PYTHON_DOWNLOADS := never

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16
	@echo
	@echo 'ARGS="…" is passed on by demo, test and benches; PYTHON=… chooses the interpreter;'
	@echo 'WORKERS=… is how many processes test at once (as many as there are cores; 0 for this one).'

demo: .venv/.synced ## run the shipped example: no key needed
	.venv/bin/codetape demo $(ARGS)

test: .venv/.synced ## run the tests; missing sandboxes are named and skipped
	.venv/bin/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(ARGS)

coverage: .venv/.synced ## run the tests and report which branches they reach
	.venv/bin/python -m pytest --cov --cov-report=term-missing $(ARGS)

lint: .venv/.synced ## check format, style, types and who imports whom
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/python scripts/check_layout.py

format: .venv/.synced ## rewrite the files in the one format, and fix what can be fixed
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

reference: .venv/.synced ## run the recorded sessions of another system (CASES=FILE for others)
	.venv/bin/python -m tests.reference $(CASES)

humaneval: .venv/.synced ## judge right and wrong solutions of HumanEval's problems in bubblewrap
	.venv/bin/python -m tests.humaneval

bench: .venv/.synced ## measure the numbers that the design must keep
	.venv/bin/python -m benchmarks $(ARGS)

bench-sandbox: .venv/.synced ## measure sandboxes against a bare process
	.venv/bin/python -m benchmarks.sandbox $(ARGS)

mutations: .venv/.synced ## break the rules on purpose and see that tests notice (ARGS="guards")
	nice .venv/bin/python scripts/mutations.py $(ARGS)

env: .venv/.synced ## make the environment from the lock file

lock: .uv/bin/uv ## resolve the dependencies anew
	.uv/bin/uv lock

clean: ## remove all that make has made
	rm -rf .uv .venv .cache build dist *.egg-info

.venv/.synced: .uv/bin/uv pyproject.toml uv.lock
	.uv/bin/uv sync --locked --quiet --compile-bytecode --python "$$(command -v $(PYTHON))"
	@touch $@

.uv/bin/uv: scripts/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "codetape needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 …")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make environments. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	rm -rf .uv
	$(PYTHON) -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r scripts/uv.txt
	@touch $@
