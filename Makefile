# samsa: one static Go binary that is a Kafka node. Bare `make` prints the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export SAMSA_PEERS ?= $(HOME)/.cache/samsa-peers/kafka-4.4.0
export CGO_ENABLED := 0
PKG ?= ./...
RUN ?= .

.DEFAULT_GOAL := help
.PHONY: help run build test check unit race crash sim fuzz scenes interop system bench generate peers conformance clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## start one node from source: both roles, two log directories under ./data, 127.0.0.1:9092
	@exec bin/samsa dev

build: ## build bin/samsa, one static binary
	@go build -trimpath -ldflags '-s -w' -o bin/samsa ./cmd/samsa

test: peers check ## everything a change must pass (installs the peers on first use)
	@mkdir -p build
	go test -json -timeout 30m ./... 2>&1 | tee build/test.json | go run ./tools/testlog
	@$(MAKE) --no-print-directory conformance

check: ## formatting, vet, and the rules of the house
	@unformatted=$$(gofmt -l cmd internal tools test bench samsatest 2>/dev/null || true); \
	  if [ -n "$$unformatted" ]; then echo "gofmt wants: $$unformatted"; exit 1; fi
	@go vet ./...

unit: ## one package or pattern: make unit PKG=./internal/storage/... RUN=TestRoll
	go test -count=1 -run '$(RUN)' $(PKG)

race: ## the race detector over the packages that own goroutines
	CGO_ENABLED=1 go test -race -count=1 -run '$(RUN)' ./internal/...

crash: ## crash-clone rounds, and processes killed: make crash ROUNDS=10000 KILLS=200
	CRASH_ROUNDS=$(or $(ROUNDS),10000) go test -count=1 -timeout 60m -run Crash ./internal/storage/partlog
	go test -count=1 -timeout 60m -run Crash ./internal/raft/node -crash.rounds $(or $(ROUNDS),10000)
	SAMSA_KILL_ROUNDS=$(or $(KILLS),200) go test -count=1 -timeout 60m -v -run TestKill ./test/system

sim: ## seeded simulation of raft quorums: make sim SEEDS=10000, or SEED=17 for one
	go test -count=1 -timeout 60m -v -run Simulation ./internal/raft/kraft -sim.seeds $(or $(SEEDS),2000) $(if $(SEED),-sim.seed $(SEED),)

fuzz: ## every fuzz target in turn: make fuzz TIME=30s
	@for p in $$(go list ./internal/...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(or $(TIME),30s) $$p; done; done

scenes: ## text scenes; REWRITE=1 rewrites them so that the diff can be read
	go test -count=1 -run 'Scene' ./internal/... $(if $(REWRITE),-rewrite,)

interop: peers build ## other people's clients and Kafka's own tools against a running samsa
	go test -count=1 -timeout 40m -v -run '$(RUN)' ./test/interop/...

system: build ## real processes: kill -9, restarts, full and failing disks
	go test -count=1 -timeout 40m -v -run '$(RUN)' ./test/system/...

bench: peers build ## the same work on samsa, on Apache Kafka and on the floor, in turn: make bench ARGS='-w produce64k'
	go run ./bench $(ARGS)

generate: peers ## regenerate internal/wire/protocol from Kafka's schemas
	go run ./tools/gen -jars $(SAMSA_PEERS) -out internal/wire/protocol

peers: ## fetch Apache Kafka 4.4.0 and the client libraries the tests talk to
	@tools/peers/fetch

conformance: ## count the ledger; every named test must exist and, after make test, have run green
	@go run ./tools/conformance $(if $(wildcard build/test.json),-results build/test.json,)

clean: ## remove what was built; ./data stays
	rm -rf bin build
