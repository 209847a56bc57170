# Entry points for people. Build products are in $(METALFORM_CACHE), outside the checkout, so that a fresh
# clone is as warm as an old one.

ROOT := $(filter 0,$(shell id -u))
export METALFORM_CACHE ?= $(if $(ROOT),/var/cache/metalform,$(HOME)/.cache/metalform)
export CARGO_TARGET_DIR ?= $(METALFORM_CACHE)/target
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/local/go/bin:$(METALFORM_CACHE)/tools/bin

LAB := tests/vagrant
SEEDS ?= 2000
OPT ?= 1
CARGO_DENY_VERSION := 0.20.2
CRANE_VERSION := v0.21.9
CRANE := $(METALFORM_CACHE)/tools/bin/crane
CARGO_DENY := $(METALFORM_CACHE)/tools/bin/cargo-deny

# A shell's COLUMNS is the width of its terminal: only a value on make's own command line counts.
BENCH_OPTIONS := $(if $(filter command line,$(origin COLUMNS)),--columns '$(COLUMNS)') \
    $(if $(SCENARIOS),--scenarios '$(SCENARIOS)') $(if $(REPS),--repetitions $(REPS)) \
    $(if $(FULL),--full) $(if $(PUBLISH),--publish)
unexport COLUMNS

.PHONY: help demo test test-long check format lint scripts unit simulation real-etcd real-api-server real-registry crane deny fresh \
    vagrant-check bundle lab-up lab-down scenarios adversity bench-engines bench-expansion bench-machines bench-mirror bench-down \
    prerequisites clean

help:
	@echo 'make demo           create, or converge, a cluster of five hosts on this machine (root)'
	@echo 'make check          format, lints, unit and integration tests, licences; needs neither root nor the lab'
	@echo 'make test           check, fresh, the lab, adversity, the demo twice, a sample of scenarios and long tests (root)'
	@echo 'make test-long      the same with every long test whole, and vagrant-check (root)'
	@echo 'make simulation     2,000 seeds of the simulation, or SEEDS=...; METALFORM_SEED repeats a run'
	@echo 'make fresh          compile on a new Debian machine: SUITE=bookworm, trixie or both; default: by seed (root)'
	@echo 'make scenarios      the tests of the demo cluster, on the one that is up (root)'
	@echo 'make adversity      the tests of bare hosts: kills, full disks, lost connections, dry runs (root)'
	@echo 'make bench-engines  compare with salt-ssh, ansible and pyinfra: half an hour (root); see benches/engines/README.md'
	@echo 'make bench-expansion  expansions of the demo cluster beside what they take by hand: 75 minutes (root), REPS=5'
	@echo 'make bench-machines  the machine controllers against kube-apiserver, over simulated hosts: ten minutes, ROW=...'
	@echo 'make bench-mirror   packages and images beside nginx, builds and checks of a bundle: three minutes (root), REPS=5'
	@echo 'make bundle         only build the packages and images of a cluster (root)'
	@echo 'make lab-up         only start the hosts (root)'
	@echo 'make lab-down       stop them and restore the machine (root)'
	@echo 'make vagrant-check  install vagrant and check the Vagrantfile (root)'
	@echo 'make clean          lab-down, and remove compiled files; images and bundles stay'

demo:
	@$(LAB)/demo

test:
	@.ci/test

test-long:
	@.ci/test --long

check: format lint scripts unit simulation deny

format:
	@$(LAB)/prerequisites build check
	cargo fmt --check

lint:
	cargo clippy --locked --all-targets -- -D warnings

# What the lab and the benchmarks decide, without a lab.
scripts:
	$(LAB)/selftest --no-lab
	for selftest in benches/*/selftest; do "$$selftest" || exit; done

unit:
	cargo test --locked --no-fail-fast
	METALFORM=$(CARGO_TARGET_DIR)/debug/metalform cargo test --locked --manifest-path tests/schemas/Cargo.toml

# On a new machine `unit` has found no etcd: the first bundle brings it.
real-etcd:
	METALFORM_REQUIRE_ETCD=1 cargo test --locked --test real_site etcd::

# The same for kube-apiserver.
real-api-server:
	METALFORM_REQUIRE_KUBE_APISERVER=1 cargo test --locked --test admission

# The same for the registry, with clients that are not ours.
real-registry: $(CRANE)
	@$(LAB)/prerequisites check
	METALFORM_REQUIRE_REGISTRY=1 cargo test --locked --test registry

crane: $(CRANE)

$(CRANE):
	@$(LAB)/prerequisites bundle
	GOBIN=$(METALFORM_CACHE)/tools/bin go install github.com/google/go-containerregistry/cmd/crane@$(CRANE_VERSION)

# With optimization of metalform alone, so that the dependencies are shared with all other tests. For a few seeds it takes
# longer to compile than to run without (OPT=0), which the other tests have compiled already.
simulation:
	CARGO_PROFILE_DEV_OPT_LEVEL=$(OPT) METALFORM_SEEDS=$(SEEDS) cargo test --locked --test simulation -- --nocapture

deny: $(CARGO_DENY)
	cargo deny --locked check licenses bans sources

$(CARGO_DENY):
	CARGO_TARGET_DIR=$(METALFORM_CACHE)/tools-build \
	    cargo install --locked --root $(METALFORM_CACHE)/tools --version $(CARGO_DENY_VERSION) cargo-deny
	rm -rf $(METALFORM_CACHE)/tools-build

fresh:
	@$(LAB)/prerequisites fresh
	@$(LAB)/fresh $(SUITE)

vagrant-check:
	@$(LAB)/prerequisites vagrant
	cd $(LAB) && vagrant validate

scenarios:
	@$(LAB)/scenarios/run

adversity:
	@$(LAB)/demo --only bundle
	@$(LAB)/prerequisites lab
	@$(LAB)/scenarios/run --bare

bench-engines:
	@$(LAB)/prerequisites build lab bench
	@benches/engines/bench $(BENCH_OPTIONS)

bench-expansion:
	@benches/expansion/bench $(if $(REPS),--repetitions $(REPS))

# Takes kube-apiserver and etcd from a bundle, as the tests do.
bench-machines:
	@$(LAB)/prerequisites build
	cargo bench --locked --bench machines -- $(if $(ROW),--only $(ROW))

# From the files of a bundle, whose parts it builds where the cache has none.
bench-mirror:
	@$(LAB)/demo --only bundle
	@$(LAB)/prerequisites bench
	@benches/mirror/bench $(if $(REPS),--repetitions $(REPS))

bench-down:
	@benches/engines/bench --down

bundle:
	@$(LAB)/demo --only bundle

lab-up:
	@$(LAB)/prerequisites lab
	@$(LAB)/lab up

# The second one is that of `scenarios/run --labs 2`; it restores what it found, so it goes first.
lab-down:
	@METALFORM_LAB=$${METALFORM_LAB:-mfl}2 $(LAB)/lab down
	@$(LAB)/lab down

prerequisites:
	@$(LAB)/prerequisites

clean: $(if $(ROOT),lab-down)
	cargo clean
