# The three you need: `make demo` (a move, before your eyes), `make test`, `make lint`.

CACHE    ?= $(or $(STSMIGRATE_CACHE),$(HOME)/.cache/stsmigrate)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LINT     := $(CACHE)/golangci-lint-v2.15.0/golangci-lint
FLAGS    := -trimpath -ldflags "-s -w -buildid= -X main.version=$(VERSION)"

.DEFAULT_GOAL := help
.PHONY: help build install test unit move controller soak upstream large storm demo bench clusters clusters-down e2e smoke kind kind-down generate lint format verify

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the programs into bin/, reproducibly
	CGO_ENABLED=0 go build $(FLAGS) -o bin/ ./cmd/...

install: ## Install stsmigrate, also as a kubectl plugin
	CGO_ENABLED=0 go install $(FLAGS) ./cmd/stsmigrate
	ln -sf stsmigrate $$(go env GOPATH)/bin/kubectl-stsmigrate

test: unit move ## Run every test: unit and simulation, then real control planes

unit: ## Run the unit tests and the simulation (no clusters, with the race detector)
	go test -race . ./cmd/... ./orchestrator/... ./pdb/... ./plans/... ./slicecontroller/... ./storage/...
	go test ./test/sim/...
	cd test/e2e && go test ./history/... ./images/...

move: ## Run the tests on real control planes (builds them first, once)
	go test -count=1 -timeout 30m ./test/cluster/... ./test/witness/... ./test/controller/... ./test/move/... ./test/demo/... ./test/bench/...

controller: ## Play random scripts to the slice controller and to the built-in one, and compare (DIFFERENTIAL_SEEDS=200 for many)
	go test -count=1 -timeout 60m -v ./test/controller/...

soak: ## Break and mend the templates of fifty slices for ten minutes (SOAK=1h for longer)
	SOAK=$(or $(SOAK),10m) go test -count=1 -timeout 24h -run TestUpdatesAreBrokenAndMended -v ./test/controller/

upstream: ## Run Kubernetes' own integration tests of StatefulSets against the slice controller
	go run ./test/upstream

large: ## Move a set of thirty, three at a time, to another cluster and back (two variants)
	MOVE_LARGE=1 go test -count=1 -timeout 20m -run TestThirty -v ./test/move/...

demo: ## Move a set of five between two local clusters; KILL=1 kills the process ten times
	go run ./test/demo $(if $(KILL),-kill)

storm: ## Let three orchestrators move fifty sets at once, while they are killed and a cluster fails
	go run ./test/storm

bench: ## Measure a move beside a shell script of kubectl commands, and the slice controller beside the built-in one
	go run ./test/bench
	go run ./test/bench/controllers

clusters: ## Start two local clusters, east and west, and print their kubeconfigs
	go run ./test/cluster/cmd/clusters up

clusters-down: ## Stop them
	go run ./test/cluster/cmd/clusters down

e2e: ## Run the end-to-end tests on two kind clusters (needs Docker; RESULTS=FILE keeps what it measured)
	cd test/e2e && E2E_RESULTS=$(abspath $(RESULTS)) go test -tags e2e -p 1 -count=1 -timeout 60m -v ./...

smoke: ## Run the fastest of them: one move between the clusters
	cd test/e2e && go test -tags e2e -count=1 -timeout 20m -run TestSmoke -v .

kind: ## Make the two kind clusters for yourself, and print the KUBECONFIG to set
	@cd test/e2e && go run ./cmd/bed up

kind-down: ## Take them away
	@cd test/e2e && go run ./cmd/bed down

generate: ## Write the kind StatefulSetSlice and its copy functions anew from its Go types
	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:generateEmbeddedObjectMeta=true paths=./slicecontroller/v1alpha1 output:crd:dir=slicecontroller/manifests

lint: $(LINT) ## Run the linters
	$(LINT) run ./...
	cd test/e2e && $(LINT) run --build-tags e2e ./...

format: $(LINT) ## Format the code
	$(LINT) fmt ./...
	cd test/e2e && $(LINT) fmt ./...

$(LINT):
	GOBIN=$(dir $@) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

verify: lint ## Lint, and check that go.mod and the tree are tidy
	go mod tidy -diff
	cd test/cluster/binaries && go mod tidy -diff
	cd test/e2e && go mod tidy -diff
	test -z "$$(git status --porcelain)" || { git status --short; exit 1; }
