# What people type. Everything that is built lies in $(METALFORM_CACHE), outside the checkout, so that a
# fresh clone is as warm as an old one.

ROOT := $(filter 0,$(shell id -u))
export METALFORM_CACHE ?= $(if $(ROOT),/var/cache/metalform,$(HOME)/.cache/metalform)
export CARGO_TARGET_DIR ?= $(METALFORM_CACHE)/target
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/local/go/bin:$(METALFORM_CACHE)/tools/bin

LAB := tests/vagrant
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(METALFORM_CACHE)/tools/bin/cargo-deny

# A shell's COLUMNS is the width of its terminal; here it is only what is given to make itself.
BENCH_OPTIONS := $(if $(filter command line,$(origin COLUMNS)),--columns '$(COLUMNS)') \
    $(if $(SCENARIOS),--scenarios '$(SCENARIOS)') $(if $(REPS),--repetitions $(REPS)) \
    $(if $(FULL),--full) $(if $(PUBLISH),--publish)
unexport COLUMNS

.PHONY: help demo test check format lint unit deny bundle lab-up lab-down scenarios adversity bench-engines bench-down prerequisites clean

help:
	@echo 'make demo        a cluster of five hosts on this machine, from nothing or from wherever it stands (root)'
	@echo 'make test        everything: check, the lab, adversity, the demo twice, its scenarios (root)'
	@echo 'make check       format, lints, unit and integration tests, licences: no root, no lab'
	@echo 'make scenarios   what must hold of the demo cluster, on the one that is up (root)'
	@echo 'make adversity   how the state engine stands what goes wrong, on bare hosts (root)'
	@echo 'make bench-engines  metalform beside salt-ssh, ansible and pyinfra: half an hour (root). benches/engines/README.md'
	@echo 'make bundle      only what the cluster is made of: packages and images (root)'
	@echo 'make lab-up      only the hosts (root)'
	@echo 'make lab-down    end them, and leave the machine as it was (root)'
	@echo 'make clean       lab-down, and remove what was compiled; images and bundles stay'

demo:
	@$(LAB)/demo

test:
	@.ci/test

check: format lint unit deny

format:
	@$(LAB)/prerequisites build
	cargo fmt --check

lint:
	cargo clippy --locked --all-targets -- -D warnings

unit:
	cargo test --locked
	METALFORM=$(CARGO_TARGET_DIR)/debug/metalform cargo test --locked --manifest-path tests/schemas/Cargo.toml

deny: $(CARGO_DENY)
	cargo deny --locked check licenses bans sources

$(CARGO_DENY):
	CARGO_TARGET_DIR=$(METALFORM_CACHE)/tools-build \
	    cargo install --locked --root $(METALFORM_CACHE)/tools --version $(CARGO_DENY_VERSION) cargo-deny
	rm -rf $(METALFORM_CACHE)/tools-build

scenarios:
	@$(LAB)/scenarios/run

adversity:
	@$(LAB)/demo --only build
	@$(LAB)/scenarios/run --bare

bench-engines:
	@$(LAB)/prerequisites bench
	@benches/engines/bench $(BENCH_OPTIONS)

bench-down:
	@benches/engines/bench --down

bundle:
	@$(LAB)/demo --only bundle

lab-up:
	@$(LAB)/lab up

lab-down:
	@$(LAB)/lab down

prerequisites:
	@$(LAB)/prerequisites

clean: $(if $(ROOT),lab-down)
	cargo clean
