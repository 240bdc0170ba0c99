# make run     the scheduler with jobs.toml, on an embedded store and a shop in ./var
# make status  who runs what under `make run`
# make audit   is the shop of `make run` sound?
# make demo    a replica dies in the middle of a job, and what becomes of it
# make check   formatting, lints, tests, documentation: what must pass before a commit
# make test    the same, after installing the servers that the tests start; CI runs this
# make simulate  laws and storms in virtual time: SEEDS=n of them, FRESH=n that nobody has tried, SEED=n one
# make mutants   deliberate faults of the protocol, which storms have to find
# make fuzz    fuzzes what reads the texts of others, for SECONDS_EACH a target (60)
# make bench   benchmarks
# make differential   every store against memory: a million random calls each, with a table; takes
#              a quarter of an hour and more. SOLOIST_TEST_REDIS_SERVER=/path names another server
# make chaos   real replicas under faults at random for MINUTES (10); SEED=n plays one seed again
# make soak    a fleet at its daily work for MINUTES (30): does it stay as small as it began?
# make model   the lease protocol searched state by state: what holds, and what falls without a guard
# make semver  does the library break those who use it? BASELINE=REV is what it is compared with
# make deb     the Debian package, into target/debian; scripts/install-test-tools has what it takes
# make manifests   deploy/kubernetes anew, from the chart
# make image-check the static program, run in a root that holds what the image holds; as root
#
# The shop may be elsewhere: make run SHOP=postgres://USER@HOST/DATABASE

CARGO ?= cargo
# What is off by default is looked at, tested and documented too.
FEATURES := --features soloist/otlp,soloist/tokio-cron-scheduler
# For how long each target is fuzzed.
SECONDS_EACH ?= 60
BIN := $(abspath $(or $(CARGO_TARGET_DIR),target))/debug
# Not DATABASE_URL of the caller's environment: that may well be of another project.
SHOP ?= $(CURDIR)/var/shop.db

.PHONY: run status audit demo build check test fmt clippy shellcheck tests aside simulate mutants doc bench manifests image-check semver deb differential chaos soak fuzz model

# Jobs find their programs on PATH, and jobs.toml hands DATABASE_URL on to them.
run audit: export PATH := $(BIN):$(PATH)
run audit: export DATABASE_URL := $(SHOP)
run status: export STATE_DIRECTORY := $(CURDIR)/var

# The shop has some old orders to begin with, so that the first minute has something to close.
run: build
	@mkdir -p var
	@$(BIN)/close-expired-orders new-orders --count 9 --placed-ago 1h
	@echo "Expired orders are closed at the start of each minute. Ctrl-C stops."
	@exec $(BIN)/soloist --config jobs.toml run

status: build
	@mkdir -p var
	@$(BIN)/soloist --config jobs.toml status

audit: build
	@mkdir -p var
	@$(BIN)/close-expired-orders audit

demo:
	@CARGO="$(CARGO)" scripts/demo

build:
	$(CARGO) build -p soloist -p close-expired-orders

test:
	scripts/install-test-tools
	$(MAKE) check

TESTS := $(CARGO) test --workspace --exclude soloist-simulation $(FEATURES)

# The tests mostly wait. What only computes is done meanwhile, and told when it is over.
check: fmt shellcheck
	$(TESTS) --no-run
	$(MAKE) --no-print-directory -j2 tests aside

# In a place of its own: a test that builds would wait for the lints.
aside: export CARGO_TARGET_DIR := target/aside
aside:
	@mkdir -p target
	@nice -n 19 $(MAKE) --no-print-directory -j1 simulate mutants clippy doc >target/aside.log 2>&1; \
	    status=$$?; cat target/aside.log; exit $$status

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets $(FEATURES) -- -D warnings
	for features in "" redis sqlite tls,tokio-cron-scheduler; do \
	    $(CARGO) clippy -p soloist --no-default-features --features "$$features" -- -D warnings || exit 1; \
	done

# Only where shellcheck is installed: the scripts are few, and no reason to demand it.
shellcheck:
	@if command -v shellcheck >/dev/null; then \
	    shellcheck .ci/run scripts/* tests/support/src/*.sh; \
	else \
	    echo "shellcheck is not installed: the scripts were not looked at"; \
	fi

tests:
	$(TESTS) -- --show-output

# As quick as what is shipped, with all checks of arithmetic; deliberate faults are compiled in, and off.
SIMULATION := RUSTFLAGS="$(RUSTFLAGS) --cfg soloist_mutants" CARGO_TARGET_DIR=target/simulation $(CARGO)
SIMULATED := --profile simulation -p soloist-simulation

simulate:
ifdef SEED
	$(SIMULATION) run -q $(SIMULATED)
else
	env -u SEEDS $(SIMULATION) test $(SIMULATED)
	$(SIMULATION) run -q $(SIMULATED)
	FROM=$$(date +%s)000 SEEDS=$(or $(FRESH),200) $(SIMULATION) run -q $(SIMULATED)
endif

mutants:
	MUTANTS=1 $(SIMULATION) run -q $(SIMULATED)

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps $(FEATURES)

fuzz:
	@CARGO="$(CARGO)" SECONDS_EACH="$(SECONDS_EACH)" scripts/fuzz

bench:
	$(CARGO) run --release -p soloist-bench

differential:
	OPERATIONS=$${OPERATIONS:-1000000} $(CARGO) test --profile simulation $(FEATURES) \
	    --test differential -- --nocapture --test-threads=1
# make hands MINUTES and SEED on, from its arguments or the environment.
chaos:
	$(CARGO) test -p soloist $(FEATURES) --test chaos -- --ignored --nocapture \
	    --exact a_fleet_holds_its_promises_for_minutes

soak:
	$(CARGO) test -p soloist $(FEATURES) --test chaos -- --ignored --nocapture \
	    --exact soak::a_fleet_stays_as_small_as_it_began

model:
	$(CARGO) run --release -p soloist-model

manifests:
	@scripts/install-test-tools
	target/test-tools/deploy/bin/python tests/deploy/deploy.py --manifests deploy/kubernetes

image-check:
	@CARGO="$(CARGO)" scripts/check-image

# Needs cargo-semver-checks. BASELINE is what was released last.
semver:
	$(CARGO) semver-checks -p soloist --baseline-rev $(BASELINE) --only-explicit-features \
	    --features redis,sqlite,tls,tokio-cron-scheduler

deb:
	@CARGO="$(CARGO)" scripts/package
