# Everything a developer runs. Each target sets up what it needs and is quiet about what is there already.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# compiled modules are kept between runs, whatever the shell says: without them each worker and each command compiles all anew
export PYTHONDONTWRITEBYTECODE :=
# how many examples of properties: `quick`, or `all` where there is time; `fixed` are all, and the same each time
EXAMPLES = $(or $(TOCSIN_EXAMPLES),quick)
PYTEST := $(BIN)/pytest -q
# what needs Java or a server throughout: every worker would import it to leave it out
APART := --ignore=tests/spark --ignore=tests/servers --ignore=tests/browser

.DEFAULT_GOAL := help
.PHONY: help install java demo lab check types unit test soak fuzz mutate bench accept clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | awk -F'\t' '{ printf "  make %-8s %s\n", $$1, $$2 }'

install: $(STAMP) ## make .venv with the pinned packages, and look for Java
	@.ci/java || true
	@echo "tocsin is $(CURDIR)/$(BIN)/tocsin; for this shell: export PATH=$(CURDIR)/$(BIN):\$$PATH"

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[spark,kafka,elasticsearch,slack,picture,web,postgresql,dev]'
	@touch $@

java:
	@.ci/java

demo: $(STAMP) java ## stream the logs of five real outages through Spark and show their incidents
	@echo "Reading the logs of five outages with Spark, which takes half a minute to start ..."
	@$(BIN)/tocsin run -c samples/tocsin.yml --once || [ $$? -eq 1 ]  # 1: incidents were told, as they should be
	@$(BIN)/tocsin pages -c samples/tocsin.yml --out samples/.tocsin/pages
	@echo && echo "The incidents in the store (make clean forgets them, and the next demo tells them again):"
	@$(BIN)/tocsin incidents list -c samples/tocsin.yml

lab: $(STAMP) java ## ship the same logs through a real Kafka broker, and through Elasticsearch, to a stand-in for Slack; then kill one of three brokers
	@$(BIN)/python -m tests.lab

check: $(STAMP) ## format, lint, types, layers, size, tests without Java (under a minute)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python tests/check_size.py
	@out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }
	@$(MAKE) --no-print-directory -j 2 types unit EXAMPLES=$(EXAMPLES) # the types while the tests collect

types:
	@out=$$($(BIN)/mypy) || { echo "$$out"; exit 1; }

unit:
	@TOCSIN_EXAMPLES=$(EXAMPLES) $(PYTEST) -n auto --dist worksteal -m "not spark and not server and not slow" $(APART)

test: EXAMPLES = $(or $(TOCSIN_EXAMPLES),all)
test: check java ## check, then everything that needs Java, a server or more time
	@$(PYTEST) -n auto --dist worksteal -m "slow and not spark and not server and not long"
	@$(PYTEST) -n 2 --dist worksteal -m "(spark or server) and not long" # two: they wait more than they compute

soak: $(STAMP) java ## what takes minutes each: faults on real clusters, a full disk, a killed broker, a run killed twenty times, ten minutes of damaged lines, and of whole runs over them, the walk from a wheel to the first incident
	@$(BIN)/pytest -q -m long
	@TOCSIN_KILLS=20 $(BIN)/pytest -q tests/servers/test_kill.py

fuzz: $(STAMP) ## ten minutes of damaged rule files and expressions, led by coverage (Linux on x86_64 or aarch64)
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]'
	@$(BIN)/python -m tests.fuzz files 300
	@$(BIN)/python -m tests.fuzz expressions 300

ONLY ?=
mutate: $(STAMP) ## change the code of the decisions, one place at a time, and list what no test notices (an hour or two; ONLY='engine.match.digits*': a part)
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[mutate]'
	@$(BIN)/mutmut run $(if $(ONLY),'$(ONLY)') > mutants.log 2>&1 || { tail -20 mutants.log; exit 1; }
	@out=$$($(BIN)/mutmut results); grep -v "not checked" <<< "$$out" | grep . || echo "every change is noticed"

bench: $(STAMP) java ## what it costs: a scan, the Spark job's CPU and latency over a real Kafka broker (some minutes)
	@$(BIN)/python -m tests.bench

accept: $(STAMP) ## write the golden files and what is generated in docs anew; review their diff
	@TOCSIN_ACCEPT=1 $(BIN)/pytest -q -m "not spark and not server" tests/unit tests/test_readme.py
	@git diff --stat -- tests/golden README.md docs

clean: ## remove what running, testing and building left behind (.venv stays)
	@rm -rf .tocsin .lab .fuzz .screenshots mutants mutants.log samples/.tocsin build dist engine/_rulepack .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	@find engine connectors tests -name __pycache__ -prune -exec rm -rf {} +
