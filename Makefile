# mcp-authd: build, test, measure.

GO      ?= go
BIN     := bin/mcp-authd
export CGO_ENABLED ?= 1

# Compilers, linters and tests live for a short time, with memory to spare: they collect it rarely.
test test-all test-long install-test-deps lint form unit release release-form release-unit: export GOGC ?= 400

.PHONY: all help build test test-all test-long unit lint form pictures drawing docs reference bench bench-compare capacity chaos patroni soak fuzz mutate install-test-deps clean \
	release release-test release-form release-unit install-release-deps

all: build

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s '	'

build: ## the static binary
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $(BIN) ./cmd/mcp-authd

test: install-test-deps ## the checks before each change: about nine minutes on two cores
	@$(MAKE) --no-print-directory -j 2 form unit

test-all: test test-long release-test ## everything that CI runs: adds the second lane, and the tests of a release

install-test-deps: ## what the tests need and this machine lacks
	@test/install-deps.sh

lint: form ## another name for form

# The settings for programs of tests and releases, so that all share compiled packages.
form: export CGO_ENABLED = 0
form: export GOFLAGS = -trimpath
form: ## gofmt, vet, staticcheck, tidy modules, imports, line lengths, links and names in docs
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	@test/staticcheck.sh
	@test/tidy.sh
	$(GO) test ./internal/archtest ./internal/conformance

pictures: install-test-deps ## docs/pictures, of the pages as they are now (Chromium)
	$(GO) test ./test/browser -count 1 -run TestPictures -update

drawing: ## docs/architecture.svg from docs/architecture.txt
	@$(GO) run ./test/drawing

# The path of report is fixed because Go caches the results of tests by their command line.
.cache/report: FORCE
	@$(GO) build -o $@ ./test/report
FORCE:

unit: .cache/report ## the first lane of tests, with the race detector where the server is in the test; ends with the slowest and the skipped tests
	@.cache/report -race -vet=off -short -timeout 20m ./...
	@CGO_ENABLED=0 .cache/report -vet=off -short -timeout 20m ./test/...

# Without the race detector: it takes three times as long, and the first lane has run the same code with it.
test-long: export CGO_ENABLED = 0
test-long: install-test-deps .cache/report ## the second lane: all clients and pages, chaos, two versions side by side
	@.cache/report -long -vet=off -timeout 30m

# What makes docs/reference of the code, and holds it to the code in "make test".
REFERENCE := -run '^(TestReference|TestSchema|TestPage|TestErrorsReference|TestFaultsAreData|TestDecisions)$$' ./internal/config \
	./internal/admin/api ./internal/archtest ./internal/testkit/audittest ./internal/attempt ./cmd/mcp-authd

docs: ## the site of the manual in dist/docs; a dead link, or a reference that is not that of the code, fails
	@$(GO) test $(REFERENCE) >/dev/null & held=$$!; docs/site/build.sh; built=$$?; \
	  wait $$held || $(GO) test $(REFERENCE) || exit 1; exit $$built

reference: ## docs/reference, and the schemas of the configuration and of the values of the chart, from the code
	$(GO) test $(REFERENCE) -update
	$(GO) test -run '^TestSchemaOfValues$$' ./test/chart -update

bench: ## benchmarks; figures are in docs/performance.md
	$(GO) test -run '^$$' -bench . -benchmem ./bench ./internal/keys ./mcpresource ./mcpresource/gosdk ./dcr ./internal/storage/sqlite ./internal/storage/postgres

bench-compare: ## benchmarks of BASE=COMMIT and of this tree in turns, as ratios with their spread
	$(GO) run ./bench/compare -base "$(BASE)"

capacity: export CGO_ENABLED = 0
capacity: ## the figures of docs/capacity.md that a command measures: sizes, rates and cuts (about ten minutes)
	$(GO) test ./bench -run '^$$' -bench 'Growth|Bytes' -benchtime 1x -signins 10000 -v
	$(GO) test ./bench -run '^$$' -bench 'Cut|Sweep' -benchtime 1x -tokens 0 -backlog 300000
	$(GO) test ./internal/storage/postgres -count 1 -run ARotationTouchesNoIndex -v
	$(GO) test ./test/chaos -tags capacity -count 1 -run TestCapacity -timeout 20m -v

chaos: ## three minutes of crashes: replicas, PostgreSQL, keys (seconds of it are in the tests)
	MCP_AUTHD_CHAOS=long $(GO) test -count 1 -v -timeout 10m ./test/chaos

patroni: install-test-deps ## deploy/postgresql under load, its primary killed, moved and hung (ten minutes)
	@deploy/release/deps.sh patroni
	$(GO) test -count 1 -tags patroni -timeout 30m -run TestPatroni ./test/chaos

soak: ## four minutes of a thousand streams at a time (seconds of it are in the tests)
	MCP_AUTHD_SOAK=long $(GO) test -count 1 -v -run TestSoak -timeout 15m ./mcpresource

fuzz: ## each fuzz target for a short time
	@test/fuzz.sh

mutate: ## can the tests fail? changes a sample of the security-critical lines, with a fixed seed (an hour)
	$(GO) run ./test/mutate

release: ## archives, packages, image, SBOMs and checksums of HEAD in dist/, nothing signed or published
	@deploy/release/build.sh

release-test: install-test-deps install-release-deps release ## what "make release" makes, looked at and used, as root on Debian
	@$(MAKE) --no-print-directory -j 2 release-form release-unit

release-form:
	$(GO) vet -C deploy/release/pack .
	$(GO) vet -C docs/site .
	@TIDY=release test/tidy.sh

# The setting of the release, so that both share compiled packages.
release-unit: export CGO_ENABLED = 0
release-unit:
	@deploy/release/test.sh

install-release-deps:
	@deploy/release/deps.sh

clean:
	rm -rf bin dist .cache
