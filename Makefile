# The three you need: `make demo` (a move, before your eyes), `make test`, `make lint`.

CACHE    ?= $(or $(STSMIGRATE_CACHE),$(HOME)/.cache/stsmigrate)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LINT     := $(CACHE)/golangci-lint-v2.15.0/golangci-lint
VULNS    := $(CACHE)/govulncheck-v1.9.0/govulncheck
ACTIONS  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FLAGS    := -trimpath -buildvcs=auto -ldflags "-s -w -buildid= -X main.version=$(VERSION)"
# What a release has archives for, and what its images are made for.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
ARCHS     ?= $(shell go env GOARCH)
ROOMS     := $(addprefix ./,$(addsuffix /...,cmd deploy docs/schemas internal orchestrator pdb plans slicecontroller storage))
PROGRAMS  := stsmigrate orchestrator slicecontroller placeholder

.DEFAULT_GOAL := help
.PHONY: help build install images image-programs release sizes alerts reproducible reliability test unit race integration controller soak faults zoo upstream large fuzz storm terms demo docs docs-build bench clusters clusters-down e2e places smoke kind kind-down generate lint format vulnerable verify

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build the programs into bin/, reproducibly
	CGO_ENABLED=0 go build $(FLAGS) -o bin/ ./cmd/...

install: ## Install stsmigrate, also as a kubectl plugin, where `go install` puts programs (GOBIN, or bin in GOPATH)
	CGO_ENABLED=0 go install $(FLAGS) ./cmd/stsmigrate
	@bin=$$(dirname "$$(go list -f '{{.Target}}' ./cmd/stsmigrate)") && \
	ln -sf stsmigrate "$$bin/kubectl-stsmigrate" && \
	install -m 755 deploy/completion/kubectl_complete-stsmigrate "$$bin/" && \
	echo "stsmigrate, kubectl-stsmigrate and kubectl_complete-stsmigrate are in $$bin" && \
	case ":$$PATH:" in *:"$$bin":*) ;; *) echo "which is not on your PATH: export PATH=\"$$bin:\$$PATH\"" ;; esac

images: image-programs ## Build the images of the programs (needs Docker, and no registry)
	for p in $(PROGRAMS); do docker build -q -f deploy/Dockerfile --target $$p --build-arg VERSION=$(VERSION) --build-arg TARGETARCH=$(shell go env GOARCH) -t $$p:$(VERSION) bin/linux || exit; done

# An image runs as somebody else than the owner of its files, whatever the umask is here.
image-programs:
	rm -rf bin/linux
	for a in $(ARCHS); do CGO_ENABLED=0 GOOS=linux GOARCH=$$a go build $(FLAGS) -o bin/linux/$$a/ ./cmd/... && chmod 755 bin/linux/$$a/* || exit; done

release: ## Make what is published of a version into dist/ (docs/releases.md)
	$(if $(filter v%,$(VERSION)),,$(error VERSION is $(VERSION): tag the commit, or say VERSION=v0.0.0-rc.1))
	rm -rf dist
	for p in $(PLATFORMS); do CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build $(FLAGS) -o dist/build/$${p%/*}_$${p#*/}/ ./cmd/stsmigrate || exit; done
	cd deploy/release && go run . -root ../.. -dist ../../dist -version '$(VERSION)' -epoch "$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}"
	cat dist/checksums.txt

sizes: build ## Compare the sizes of the programs with those that docs/releases.md states
	.ci/sizes bin docs/releases.md

reproducible: ## Build the programs in two folders, and compare their bytes
	deploy/reproducible build bin

test: unit integration ## Run every test: unit and simulation, then real control planes

unit: ## Run the unit tests and the simulation (no clusters)
	go test -timeout 30m $(ROOMS) ./test/simulation/... ./test/pictures/... ./test/zoo ./test/reliability
	go test -count=1 ./test/repo # Go does not see what `go list` reads
	cd test/e2e && go test ./history/... ./images/...
	cd deploy/release && go test -count=1 ./... # Go does not see when the manifest changes, which is of another module

race: ## Run the unit tests of what has goroutines with the race detector
	go test -race $(ROOMS)

integration: ## Run the tests on real control planes (builds them first, once); of the moves one of six, and of the sets that people have one of five, other ones every day (MOVE_SHARE=1 FIELD_SHARE=1 for all; KUBERNETES=1.33 or 1.37 for another version, which is built first: 20 minutes on two cores)
	# The two that take longest begin first, or a core is idle in the end.
	MOVE_SHARE=$(or $(MOVE_SHARE),6) FIELD_SHARE=$(or $(FIELD_SHARE),5) go test -count=1 -p 3 -timeout 60m ./test/controller/... ./test/acceptance/move/... ./test/performance/storm/... ./test/acceptance/tutorials/... ./test/models/... ./test/acceptance/field/... ./test/acceptance/install/... ./test/acceptance/demo/... ./test/performance/bench/... ./test/internal/cluster/... ./test/internal/witness/...

controller: ## Play random scripts to the slice controller and to the built-in one, and compare: six scripts, other ones every day (DIFFERENTIAL_SEEDS=200 for many)
	go test -count=1 -timeout 60m -v ./test/controller/...

soak: ## Play every case of the simulation (more than an hour), every move in both modes, then break and repair the templates of fifty slices for ten minutes (SOAK=1h for longer)
	SIM_LONG=1 go test -count=1 -timeout 24h ./test/simulation
	MOVE_ALL=1 go test -count=1 -timeout 120m ./test/acceptance/move
	SOAK=$(or $(SOAK),10m) go test -count=1 -timeout 24h -run TestABrokenUpdateIsMended -v ./test/controller/

faults: ## Let one write go wrong in every way, at every write of a move, then upgrade both control planes in mid-move, and restore backups of either (hours; SHARE=60 for one of sixty, other ones every day)
	MOVE_ALL=1 UPGRADE=1 FAULTS=$(or $(SHARE),1) go test -count=1 -timeout 24h -run 'TestAFaultAtAnyWrite|TestTheControlPlanesAreUpgraded|TestABackupThatIsRestored' ./test/acceptance/move

upstream: ## Run Kubernetes' own integration tests of StatefulSets against the slice controller
	go run ./test/controller/upstream

large: ## Move a set of thirty, three at a time, to another cluster and back (two variants)
	MOVE_LARGE=1 go test -count=1 -timeout 20m -run TestThirty -v ./test/acceptance/move/...

zoo: ## Break the product on purpose, one guard at a time, and fail if the tests do not find it (SHARE=12 for one guard of twelve, other ones every day)
	go run ./test/zoo $(if $(SHARE),-share $(SHARE) -quick)

reliability: ## Play everything that shows that the promises hold, in rounds, and write docs/reliability.md and its tables of it (days; FOR=2h for as much as fits, ONLY=zoo for one part)
	go run ./test/reliability $(if $(FOR),-for $(FOR)) $(if $(ONLY),-only $(ONLY))

fuzz: ## Put random plans, journals, kubeconfigs, names and budgets before what reads those of strangers, 100,000 each (FUZZ=5000000x for more; a number and no time, since the go command may fail at the end of a time: go.dev/issue/75804)
	go test ./plans/journal -run '^$$' -fuzz '^FuzzJournal$$' -fuzztime $(or $(FUZZ),100000x) -fuzzminimizetime 100x
	go test ./internal/engine/runner -run '^$$' -fuzz '^FuzzPlan$$' -fuzztime $(or $(FUZZ),100000x) -fuzzminimizetime 100x
	go test ./orchestrator/fleet -run '^$$' -fuzz '^FuzzSanitize$$' -fuzztime $(or $(FUZZ),100000x) -fuzzminimizetime 100x
	go test ./internal/dns -run '^$$' -fuzz '^FuzzNames$$' -fuzztime $(or $(FUZZ),100000x) -fuzzminimizetime 100x
	go test ./pdb -run '^$$' -fuzz '^FuzzBudgets$$' -fuzztime $(or $(FUZZ),100000x) -fuzzminimizetime 100x

demo: ## Move a set of five between two local clusters; KILL=1 kills the process ten times (BINARIES=DIR has etcd, kube-apiserver and so on: what it lacks is compiled)
	$(if $(BINARIES),STSMIGRATE_BINARIES=$(abspath $(BINARIES))) go run ./test/acceptance/demo $(if $(KILL),-kill)

docs: docs/node_modules/.package-lock.json ## Serve the documents as a site, and show changes at once (needs npm)
	cd docs && npm run dev

docs-build: docs/node_modules/.package-lock.json ## Build the site of the documents into docs/.vitepress/dist; a dead link fails (needs npm)
	cd docs && npm run build

docs/node_modules/.package-lock.json: docs/package-lock.json
	@command -v npm >/dev/null || { echo "the site is built by VitePress, which needs npm, and there is no npm on PATH: install Node.js 20 or newer" >&2; exit 1; }
	cd docs && npm ci --no-audit --no-fund
	@touch $@

terms: ## Measure what a plan, an ordinal and a plan at rest cost an API server, in clusters with 1,000 nodes and 30,000 volumes (30 minutes)
	go run ./test/performance/storm -terms -plans 6 -pods 10 -resting 20 -nodes 1000 -volumes 30000 -events 20000 -processes 1 -cluster-qps 200

storm: ## Let three orchestrators move fifty sets at once, while they are killed and a cluster fails
	go run ./test/performance/storm

bench: ## Measure moves beside a shell script of kubectl commands, and the slice controller beside the built-in one (RESULTS=FILE keeps what the moves cost; LARGE=1000 for a larger set than 200)
	missed=0; \
	go run ./test/performance/bench $(if $(RESULTS),-results $(RESULTS)) $(if $(LARGE),-large $(LARGE)) || missed=1; \
	go run ./test/performance/bench/controllers || missed=1; \
	exit $$missed

clusters: ## Start two local clusters, east and west, and print their kubeconfigs
	go run ./test/internal/cluster/cmd/clusters up

clusters-down: ## Stop them
	go run ./test/internal/cluster/cmd/clusters down

e2e: ## Run the end-to-end tests on two kind clusters (needs Docker; RESULTS=FILE keeps what it measured; SOAK=30m moves an etcd to and fro for so long)
	cd test/e2e && E2E_RESULTS=$(abspath $(RESULTS)) go test -tags e2e -p 1 -count=1 -timeout $(if $(SOAK),24h,3h) -v ./...

places: ## Measure what the places are worth that are taken before ordinals leave, on kind clusters with a slow registry (RESULTS=FILE keeps it)
	cd test/e2e && E2E_PLACES=$(or $(abspath $(RESULTS)),/dev/null) go test -tags e2e -count=1 -timeout 30m -run TestPlaces -v .

smoke: ## Run the fastest of them: the images, and one move between the clusters
	cd test/e2e && go test -tags e2e -count=1 -timeout 20m -run 'TestSmoke|TestImages' -v .

kind: ## Make the two kind clusters for yourself, and print the KUBECONFIG to set
	@cd test/e2e && go run ./cmd/bed up

kind-down: ## Take them away
	@cd test/e2e && go run ./cmd/bed down

generate: ## Write anew what is made of something else: the kinds StatefulSetSlice, StatefulSetMigration and VolumeConsent, the orchestrator's dashboard, alerts and table of metrics, the volume sources of the policies, what kustomize users install
	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:generateEmbeddedObjectMeta=true paths=./slicecontroller/v1alpha1 output:crd:dir=slicecontroller/manifests
	rm -rf slicecontroller/v1alpha1/applyconfiguration # a type that is gone would stay
	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 'applyconfiguration:externalApplyConfigurations={k8s.io/api/core/v1.PodTemplateSpec@k8s.io/client-go/applyconfigurations/core/v1,k8s.io/api/core/v1.PersistentVolumeClaimTemplate@k8s.io/client-go/applyconfigurations/core/v1}' paths=./slicecontroller/v1alpha1
	go run ./deploy/kind slicecontroller/manifests/apps.stsmigrate.dev_statefulsetslices.yaml slicecontroller/v1alpha1/types.go
	cp slicecontroller/manifests/apps.stsmigrate.dev_statefulsetslices.yaml deploy/chart/statefulsetslices.yaml
	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./internal/api/v1alpha1 output:crd:stdout > deploy/chart/statefulsetmigrations.yaml
	go run ./deploy/kind deploy/chart/statefulsetmigrations.yaml internal/api/v1alpha1/types.go
	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./internal/api/consent output:crd:stdout > deploy/chart/volumeconsents.yaml
	go run ./deploy/kind deploy/chart/volumeconsents.yaml internal/api/consent/types.go
	go test ./orchestrator -run 'TestDashboardAndAlertsAreAsGenerated|TestThePageHasTheMetrics' -update
	go test ./storage -run TestThePoliciesKnowTheSources -update
	go test ./deploy -run TestKustomize -update

lint: $(LINT) ## Run the linters
	$(LINT) run ./...
	cd test/e2e && $(LINT) run --build-tags e2e ./...
	cd deploy/release && $(LINT) run ./...
	go run $(ACTIONS)

platforms: ## Vet the programs, and their tests, for the other systems that they are released for
	for os in darwin windows; do GOOS=$$os go vet ./cmd/... || exit; done

format: $(LINT) ## Format the code
	$(LINT) fmt ./...
	cd test/e2e && $(LINT) fmt ./...
	cd deploy/release && $(LINT) fmt ./...
	cd test/alerts && $(LINT) fmt ./...

$(LINT):
	GOBIN=$(dir $@) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

vulnerable: $(VULNS) ## Look for known vulnerabilities in what the programs call (needs vuln.go.dev, or says that it is skipped)
	.ci/vulnerabilities $(VULNS)

$(VULNS):
	GOBIN=$(dir $@) go install golang.org/x/vuln/cmd/govulncheck@v1.9.0

alerts: $(LINT) ## Lint and run the tests of the alerts, with Prometheus itself (downloads half a gigabyte, once)
	cd test/alerts && $(LINT) run ./... && go test -count=1 ./... # it reads files outside of its module

verify: lint vulnerable sizes alerts ## Lint, look for vulnerabilities, and check that go.mod and the tree are tidy, and the programs no larger than stated
	go mod tidy -diff
	cd test/internal/cluster/binaries && go mod tidy -diff
	for v in test/internal/cluster/binaries/*/; do (cd $$v && go mod tidy -diff) || exit; done
	cd test/e2e && go mod tidy -diff
	cd deploy/release && go mod tidy -diff
	cd test/alerts && go mod tidy -diff
	test -z "$$(git status --porcelain)" || { git status --short; exit 1; }
