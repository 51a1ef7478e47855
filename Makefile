# What people type. Everything here is a short front for CMake, ctest and the scripts in tools/.
SHELL := /bin/bash
.DEFAULT_GOAL := help

JOBS   ?= $(shell nproc)
# Many tests mostly wait.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
PREFIX ?= /usr/local
RANKS  ?= 2
ROUNDS ?= 10
# = : the shell counts in a variable of this name.
SECONDS = 20
MINUTES ?= 5

BIN := build/bin
# Each sanitizer is a build directory of its own (CMakePresets.json).
SANITIZED_LABELS := unit|conformance|multiproc

.PHONY: help deps deps-test deps-python venvs build demo test check install wheel bench soak attack workflows asan tsan arm64 fuzz format clean

help: ## this list
	@echo "make demo                install what is missing, build, train Fashion-MNIST on $(RANKS) ranks"
	@echo "make test                install what is missing, build, run every test"
	@echo "make build               build/bin/farandole; then: source build/env"
	@echo "make check               build and run the quick tests only"
	@echo "make install PREFIX=DIR  install command, library, headers (default $(PREFIX))"
	@echo "make wheel               build/wheels: the packages farandole and farandole-horovod for pip"
	@echo "make bench               this machine's figures, beside those of the peers that are installed"
	@echo "make soak ROUNDS=N       tests again and again, random batches, attacks, fuzzers: about N quarters of an hour (default $(ROUNDS))"
	@echo "make attack MINUTES=N    kills, stops, hostile bytes and overwritten memory, on running jobs (default $(MINUTES); root)"
	@echo "make workflows           jobs in real containers of two dockerd, as new users start them (root; 15 minutes the first time)"
	@echo "make asan, make tsan     the tests under the sanitizers"
	@echo "make arm64               build for arm64, and run the kernels' tests in an emulator"
	@echo "make fuzz SECONDS=N      every fuzzer of a decoder for N seconds (default $(SECONDS))"
	@echo "make format              clang-format and ruff over all sources"
	@echo "make clean               remove the build directories"

deps:
	@tools/deps build

deps-test:
	@tools/deps build test

deps-python:
	@tools/deps python

venvs: deps-python
	@tools/venv torch-2.15
	@tools/venv tf-2.21
	@tools/venv tf-2.15

build: deps
	@cmake --preset release -DFARANDOLE_TESTS=ON -DFARANDOLE_BENCH=ON $(if $(VERBOSE),,--log-level=WARNING)
	@cmake --build build -j $(JOBS)
	@tools/write-env build

# Only what it needs: neither tests nor benchmarks nor other engines. In a tree that has those it leaves them alone.
demo:
	@tools/deps demo
	@[ -f build/build.ninja ] || \
	  cmake --preset release -DFARANDOLE_TESTS=OFF -DFARANDOLE_BENCH=OFF $(if $(VERBOSE),,--log-level=WARNING)
	@cmake --build build -j $(JOBS) --target farandole_command farandole_python fashion_mnist
	@tools/write-env build
	$(BIN)/farandole run -np $(RANKS) $(BIN)/examples/fashion_mnist

# What comes from PyPI is waited for while the compiler works.
test: deps-test deps-python
	@$(MAKE) --no-print-directory -j 2 build venvs
	@ctest --test-dir build -j $(TEST_JOBS) --output-on-failure

check: deps-test build
	@ctest --test-dir build -j $(JOBS) --output-on-failure -L unit

install: build
	@cmake --install build --prefix "$(PREFIX)"

wheel: build
	@tools/wheel build

bench: build
	$(BIN)/farandole bench peers
	$(BIN)/farandole bench memory
	$(BIN)/farandole bench collective --against available
	$(BIN)/farandole bench tensors

soak: deps-test build
	@ctest --test-dir build --output-on-failure -L 'conformance|multiproc' --repeat until-fail:$(ROUNDS)
	@BATCH_SEED=$$RANDOM BATCH_SECONDS=$$(($(ROUNDS) * 20)) ctest --test-dir build --output-on-failure -R conformance.batches
	@tools/deps python
	@KILL_SEED=$$RANDOM KILL_ROUNDS=$$(($(ROUNDS) * 15)) tests/python/run_pytest /usr/bin/python3 tests/python/test_c10d_kills.py
	@/usr/bin/python3 tests/attack/attack.py --seed $$RANDOM --seconds $$(($(ROUNDS) * 180))
	@tools/deps build sanitizers
	@tools/fuzz $$(($(ROUNDS) * 60)) $(JOBS)

attack: deps-test build
	@/usr/bin/python3 tests/attack/attack.py --seconds $$(($(MINUTES) * 60))

workflows: deps-test build
	@tests/containers/run

asan tsan: deps-test
	@tools/deps sanitizers
	@tools/sanitize $@ '$(SANITIZED_LABELS)' $(JOBS)

arm64:
	@tools/deps build arm64
	@tools/arm64 test $(JOBS)

fuzz:
	@tools/deps build sanitizers
	@tools/fuzz $(SECONDS) $(JOBS)

format:
	@tools/deps ci
	@tools/sources | xargs -r clang-format -i
	@tools/lint python --fix

clean:
	@cmake -E rm -rf build build-dev build-asan build-tsan build-arm64 build-threads
