# `make run` and `make test` need git, make and Python 3.11 with venv; each brings the rest.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
# one more than there are cores: many tests wait
WORKERS := $(shell expr $$(nproc) + 1)
SUDO    := $(if $(filter 0,$(shell id -u)),,sudo)

.DEFAULT_GOAL := help
.PHONY: help venv run test check chaos soak bench bench-detection bench-candidates bench-scale bench-desk lock clean tools

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 18

venv: $(VENV)/run.stamp  ## the environment only, as locked

run: $(VENV)/run.stamp  ## find the copies among the bundled sample stories
	$(BIN)/neardup backfill

test: $(VENV)/test.stamp tools check  ## every check and every test
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

chaos: $(VENV)/test.stamp tools  ## every fault test in full, and the table of faults (CHAOS=17)
	CHAOS=$(or $(CHAOS),17) $(BIN)/pytest -n $(WORKERS) --dist worksteal tests/faults

soak: $(VENV)/test.stamp tools  ## 500,000 stories while store, Redis and the process fail (STORIES=n)
	$(BIN)/python -m tests.faults.soak $(STORIES)

bench: $(VENV)/test.stamp tools  ## microseconds a story, beside a plain reference flow
	$(BIN)/python -m tests.bench.throughput

bench-detection: $(VENV)/test.stamp  ## recall, precision and cost beside datasketch and simhash (CORPUS=folder)
	$(BIN)/python -m tests.bench.detection $(CORPUS)

bench-candidates: $(VENV)/test.stamp tools  ## lookups in both indexes at STORIES=1000000
	$(BIN)/python -m tests.bench.candidates $(if $(STORIES),--stories $(STORIES))

bench-scale: $(VENV)/test.stamp tools  ## ledger, indexes and sweep at 15.8 million stories, or SIZE=1/500 (JSON=file)
	$(BIN)/python -m tests.bench.scale $(if $(SIZE),--size $(SIZE)) $(if $(JSON),--json $(JSON))

bench-desk: $(VENV)/test.stamp  ## the review desk's pages over 50,000 flags
	$(BIN)/python -m tests.bench.desk

# redis-server for the contract and system tests, promtool for the alert rules, strace for system calls and syncs, a
# browser and ten scripts for the desk
tools:
	@(for tool in redis-server promtool systemd-analyze strace chromium; do command -v $$tool >/dev/null || exit 1; done) && \
	test -e /usr/share/fonts/truetype/noto/NotoSansOriya-Regular.ttf || { \
	  $(SUDO) apt-get update -q && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
	    redis-server prometheus systemd strace chromium fonts-noto-core; }

$(VENV)/run.stamp: deploy/requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r deploy/requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp deploy/requirements-test.lock
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r deploy/requirements-test.lock
	touch $@

lock:  ## choose the versions anew (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --upgrade \
	  --extra bench --extra build --extra test -o deploy/requirements-test.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --extra build -c deploy/requirements-test.lock -o deploy/requirements.lock pyproject.toml

clean:  ## drop the environment and the embedded ledger
	rm -rf $(VENV) var
