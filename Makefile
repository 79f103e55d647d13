# Every target does the set-up that it needs; see scripts/setup.sh.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup packages services demo test test-fast test-slow test-sample check audit bench smoke docs lock clean

BIN := .venv/bin
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder
WITH_JAVA = JAVA_HOME="$$(cat .venv/java-home)"
ARGS ?=
# Tests start some hundred interpreters; each may use what the first has compiled.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## make .venv with all packages, find or install Java
	@scripts/setup.sh

packages:
	@scripts/setup.sh packages

services: setup  ## fetch the Kafka broker, find a PostgreSQL server: what tests and examples use
	@$(WITH_JAVA) $(BIN)/headgate dev fetch

demo: setup  ## run the demonstration
	@$(WITH_JAVA) $(BIN)/python examples/demo.py

test: services  ## run the fast and the Spark tests (ARGS="-k name" and the like are passed on to pytest)
	@$(WITH_JAVA) $(BIN)/python -m pytest -q $(SIDE_BY_SIDE) $(ARGS)

test-fast: packages  ## run the tests that need no Java
	@$(BIN)/python -m pytest -q -n auto -m "not spark and not slow" $(ARGS)

test-slow: services  ## run the tests that take minutes
	@$(WITH_JAVA) $(BIN)/python -m pytest -q -m slow $(ARGS)

SAMPLE := tests/cli/test_healing.py::test_spark_and_the_engine_are_killed_and_it_goes_on \
	tests/cli/test_serving.py::test_killed_in_the_middle_of_submissions \
	"tests/cli/test_serving.py::test_killed_wherever_a_submission_may_be[half snapshot 2-hot]" \
	tests/examples/test_nexmark.py::test_all_nine_together \
	tests/examples/test_linear_road_on_spark.py::test_every_answer_is_right \
	tests/runtime/engine/test_exactly_once.py::test_a_kill_between_commit_and_delivery \
	"tests/plugins/riotbench/test_riotbench.py::test_the_applications[city]" \
	tests/benchmarks/test_apps.py::test_etl_puts_out_what_pyspark_does \
	tests/planning/test_plans.py::test_no_heuristic_is_above_the_optimum_on_many

test-sample: services  ## run a few of the tests that take minutes: engines killed, whole applications, plans against brute force
	@$(WITH_JAVA) $(BIN)/python -m pytest -q -m slow $(SIDE_BY_SIDE) $(SAMPLE)

check: packages  ## lint, formatting, which room imports which, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --config .importlinter --no-logo
	$(BIN)/mypy

audit: packages  ## look up known weaknesses of the packages of requirements.lock; asks PyPI's advisories
	@$(BIN)/python -m pip install -q --disable-pip-version-check pip-audit
	@$(BIN)/pip-audit -r requirements.lock --no-deps --disable-pip

bench: setup  ## run the benchmark of the model
	@$(WITH_JAVA) $(BIN)/headgate bench model $(ARGS)

smoke: setup  ## run the short form of every benchmark to its end
	@$(WITH_JAVA) $(BIN)/headgate bench --smoke $(ARGS)

docs: packages  ## build the documentation into docs/_build
	$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lock:  ## write requirements.lock from pyproject.toml (ARGS=--upgrade takes the newest versions)
	@scripts/setup.sh venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/uv pip compile -q --system-certs --universal --python-version 3.11 --fork-strategy fewest --all-extras \
		--generate-hashes --no-header --no-annotate --output-file requirements.lock $(ARGS) pyproject.toml

clean:  ## remove what builds and tests left behind; .venv stays
	@rm -rf build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
		spark-warehouse metastore_db derby.log
	@find src tests docs examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
