// Package repo checks the repository itself: which package may import which, what types may grow to, words, pages and links.
package repo

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/stsmigrate/stsmigrate"

// imports returns the direct imports of every package of the product, tests left out. Those of this module have their
// short names.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		for k, imported := range fields {
			if strings.HasPrefix(imported, module+"/") {
				fields[k] = module + "/" + short(imported)
			}
		}
		all[short(fields[0])] = fields[1:]
	}
	return all
}

// rooms are the packages of the program that moves sets, from the top of the house to its ground, and the rooms that
// each may import. A room without a line of its own belongs to the one above it in the tree of folders. Every arrow runs
// down, so no two rooms can import one another.
func rooms() []room { //nolint:funlen // a table
	return []room{
		{"cmd/orchestrator", "orchestrator plans clusters/transport cmd/internal/program"},
		{"cmd/placeholder", "placeholder/waiting"},
		{"cmd/stsmigrate", "dns plans/plainyaml cmd/internal/page cmd/internal/live cmd/internal/rehearsal plans/preview cmd/internal/bundle cmd/internal/rollouts cmd/internal/compare cmd/internal/complete cmd/internal/doctor cmd/internal/draft cmd/internal/explain cmd/internal/findings cmd/internal/hints cmd/internal/remarks cmd/internal/output cmd/internal/reach cmd/internal/stops cmd/internal/program docs/schemas adoption rollout engine engine/requests engine/recovery engine/runner engine/verify preflight preflight/access preflight/check preflight/volumes records report clusters pdb deploy plans plans/journal reasons"},
		{"cmd/internal/doctor", "cmd/internal/draft cmd/internal/findings cmd/internal/output cmd/internal/program cmd/internal/reach preflight preflight/check clusters slicecontroller/v1alpha1 plans"},
		{"cmd/internal/flagtest", ""},
		{"cmd/internal/programtest", "cmd/internal/program"},
		{"cmd/internal/rehearsal", "cmd/internal/program engine records dns clusters plans plans/journal"},
		{"cmd/internal/draft", "plans/plainyaml cmd/internal/program cmd/internal/reach preflight plans/preview clusters plans"},
		{"cmd/internal/compare", "cmd/internal/output cmd/internal/program plans/preview plans"},
		{"cmd/internal/complete", "cmd/internal/explain cmd/internal/reach preflight records slicecontroller/v1alpha1"},
		{"cmd/internal/page", "cmd/internal/program cmd/internal/reach api/v1alpha1 dashboard engine engine/requests records plans reasons"},
		{"cmd/internal/bundle", "plans/plainyaml cmd/internal/reach engine engine/verify preflight preflight/check records storage clusters plans plans/journal"},
		{"cmd/internal/hints", "cmd/internal/reach plans plans/journal"},
		{"cmd/internal/live", "cmd/internal/output cmd/internal/program cmd/internal/reach cmd/internal/stops engine records clusters view view/event plans plans/journal reasons"},
		{"cmd/internal/stops", "cmd/internal/program engine plans plans/journal reasons"},
		{"cmd/internal/findings", "cmd/internal/program preflight preflight/check plans reasons"},
		{"cmd/internal/remarks", "preflight/access plans"},
		{"cmd/internal/explain", "cmd/internal/program preflight preflight/check reasons"},
		{"cmd/internal/rollouts", "cmd/internal/output cmd/internal/reach cmd/internal/program rollout clusters plans"},
		{"cmd/internal/output", "cmd/internal/program plans"},
		{"cmd/internal/reach", "cmd/internal/program slicecontroller/v1alpha1 engine/requests preflight/access records clusters clusters/transport dns plans plans/journal reasons"},
		{"orchestrator", "api/v1alpha1 plans/preview orchestrator/fleet orchestrator/notify dashboard engine engine/runner engine/refusals engine/requests engine/wavelimit preflight preflight/access preflight/check records plans/weight clusters clusters/transport dns plans plans/journal writes reasons clusters/answers"},
		{"engine/runner", "engine engine/requests engine/wavecheck engine/wavelimit preflight preflight/access preflight/check records sets dns gates clusters plans plans/journal reasons"},
		{"orchestrator/fleet", "plans/plainyaml dns clusters clusters/transport plans/weight reasons"},
		{"orchestrator/notify", "plans"},
		{"orchestrator/monitoring", "reasons"},
		{"dashboard", "plans plans/journal"},
		{"engine/verify", "dns/clients sets sets/copies records storage pdb clusters plans plans/journal"},
		{"engine/recovery", "sets storage pdb gates clusters plans plans/journal reasons"},
		{"engine", "engine/refusals engine/requests engine/muster engine/wavecheck engine/wavelimit records placeholder sets sets/copies storage pdb dns dns/clients gates clusters plans plans/journal writes reasons clusters/answers"},
		{"engine/requests", "plans plans/journal reasons"},
		{"engine/wavecheck", "clusters plans"},
		{"engine/muster", "clusters plans"},
		{"engine/wavelimit", "plans"},
		{"engine/refusals", "plans clusters/answers"},
		{"preflight", "preflight/expanded preflight/trials preflight/pods preflight/volumes preflight/owners preflight/access preflight/check records sets sets/copies storage pdb dns dns/clients gates clusters plans plans/build plans/journal writes reasons clusters/answers plans/weight"},
		{"preflight/expanded", "expansion preflight/pods preflight/owners preflight/check sets clusters plans plans/build plans/weight"},
		{"preflight/trials", "parts part preflight/pods preflight/check placeholder sets/copies storage pdb dns gates clusters plans plans/build writes clusters/answers"},
		{"preflight/pods", "part preflight/scheduling preflight/volumes preflight/owners preflight/access preflight/check sets sets/copies storage dns clusters plans plans/build writes clusters/answers plans/weight"},
		{"preflight/volumes", "preflight/owners preflight/access preflight/check storage clusters plans plans/build writes clusters/answers"},
		{"preflight/owners", "preflight/check clusters plans plans/weight"},
		{"preflight/access", "part parts preflight/check storage pdb dns dns/clients clusters plans plans/journal writes reasons api/consent"},
		{"preflight/scheduling/schedulingtest", "preflight/scheduling"},
		{"clusters/clusterstest", "clusters"},
		{"preflight/checktest", "preflight/check storage clusters plans plans/build plans/planstest"},
		{"preflight/check", "sets storage records clusters plans plans/build reasons"},
		{"adoption", "sets clusters plans reads writes reasons slicecontroller/v1alpha1 plans/weight"},
		{"rollout", "sets clusters plans writes slicecontroller/v1alpha1 plans/weight"},
		{"report", "plans plans/journal plans/preview"},
		{"plans/preview", "part parts pdb plans"},
		{"parts", "part placeholder sets storage pdb dns gates plans"},
		{"placeholder", "placeholder/waiting preflight/scheduling sets part storage clusters clusters/answers plans plans/build writes reasons"},
		{"sets", "part sets/copies storage pdb dns clusters plans plans/build reads writes reasons"},
		{"sets/copies", "part clusters plans"},
		{"placeholder/waiting", ""},
		{"preflight/scheduling", ""},
		{"records", "api/v1alpha1 clusters plans plans/journal writes reasons plans/weight"},
		{"storage", "part clusters plans plans/build reads writes reasons plans/weight api/consent"},
		{"pdb", "part clusters plans writes reasons"},
		{"dns", "dns/clients part clusters plans writes reasons"},
		{"dns/clients", "clusters plans"},
		{"gates", "part clusters plans reads writes expressions reasons"},
		{"clusters/transport", "clusters clusters/answers writes plans/weight"},
		{"clusters", "plans reads writes slicecontroller/v1alpha1 plans/weight"},
		{"clusters/answers", "reasons"},
		{"view/event", "plans reasons"},
		{"view", "plans"},
		{"part", "plans"},
		{"plans/planstest", "plans plans/build"},
		{"api/v1alpha1", "plans"},
		{"api/consent", ""},
		{"plans/journal", "plans reasons"},
		{"plans/build", "plans plans/plainyaml"},
		{"plans", "plans/plainyaml expressions reasons plans/weight"},
		{"plans/plainyaml", "plans/weight"},
		{"plans/weight", ""},
		{"writes", "reads"},
		{"reads", ""},
		{"expansion", ""},
		{"expressions", ""},
		{"reasons", ""},
		{"deploy", ""},
		{"docs/schemas", ""},
	}
}

// room is a package, and those of this module that it may import.
type room struct{ name, below string }

func TestPackagesImportOnlyAlongTheArrows(t *testing.T) {
	all, floor := imports(t), map[string]int{}
	for k, r := range rooms() {
		floor[r.name] = k + 1
	}
	for _, r := range rooms() {
		if _, there := all[r.name]; !there {
			t.Errorf("there is no package %s: was it renamed?", r.name)
		}
		for _, below := range strings.Fields(r.below) {
			if floor[below] > 0 && floor[below] < floor[r.name] {
				t.Errorf("package %s may import %s: that arrow runs up", r.name, below)
			}
		}
		for _, imported := range all[r.name] {
			if to, own := strings.CutPrefix(imported, module+"/"); own && !slices.Contains(strings.Fields(r.below), to) {
				t.Errorf("package %s imports %s, which is not below it", r.name, to)
			}
		}
	}
}

func TestEveryPackageHasARoom(t *testing.T) {
	for name := range imports(t) {
		outside := strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "slicecontroller") || strings.HasPrefix(name, "deploy/") || name == module || name == "cmd/slicecontroller" || name == "cmd/internal/program"
		if !outside && !slices.ContainsFunc(rooms(), func(r room) bool { return r.name == name }) {
			t.Errorf("package %s has no place in the house: give it a line among the rooms", name)
		}
	}
}

// What a package is for says what it must not know.
func TestPackagesDoWithoutWhatIsNotTheirs(t *testing.T) {
	all := imports(t)
	for name, deny := range map[string][]string{
		"plans":           {"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/go-logr"},
		"slicecontroller": {module + "/deploy", module + "/plans", module + "/cmd", "github.com/spf13"},
		// One mistake must not be in the engine and in who judges it.
		"test/internal/witness": {module},
	} {
		for _, imported := range all[name] {
			for _, d := range deny {
				if imported == d || strings.HasPrefix(imported, d+"/") {
					t.Errorf("package %s imports %s", name, imported)
				}
			}
		}
	}
	for name, list := range all {
		for _, imported := range list {
			if strings.HasPrefix(imported, "github.com/spf13") && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "test/") {
				t.Errorf("package %s imports %s: only commands have flags", name, imported)
			}
			if (imported == module+"/plans/planstest" || imported == module+"/clusters/clusterstest" || imported == module+"/preflight/checktest") && name != "preflight/checktest" {
				t.Errorf("package %s imports %s: it is for tests", name, imported)
			}
		}
	}
}

func TestTheCoreOfTheSliceControllerKnowsNoCluster(t *testing.T) {
	for _, imported := range imports(t)["slicecontroller/core"] {
		if strings.Contains(imported, ".") && !strings.HasPrefix(imported, "k8s.io/api/") && !strings.HasPrefix(imported, "k8s.io/apimachinery/") {
			t.Errorf("package slicecontroller/core imports %s: it knows the API's types and nothing else", imported)
		}
	}
}

func TestSomePackagesAreForNobodyElse(t *testing.T) {
	all := imports(t)
	for name, list := range all {
		for _, imported := range list {
			if strings.HasPrefix(imported, module+"/test") && !strings.HasPrefix(name, "test/") {
				t.Errorf("package %s imports %s: nothing imports test", name, imported)
			}
			if imported == module+"/slicecontroller" && name != "cmd/slicecontroller" && name != "slicecontroller" {
				t.Errorf("package %s imports %s: of the slice controller only its kinds are for others", name, imported)
			}
			if strings.HasPrefix(imported, "k8s.io/kubernetes") {
				t.Errorf("package %s imports %s: only the test bed's own module may", name, imported)
			}
		}
	}
}

// A package that `make test` does not name is not tested there.
func TestTheMakefileTestsEveryRoom(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "ROOMS     := ")
	list, _, _ = strings.Cut(list, "))")
	_, list, _ = strings.Cut(list, "/...,")
	internal := map[string]bool{}
	folders, err := os.ReadDir("internal")
	for _, folder := range folders {
		internal[folder.Name()] = slices.Contains(strings.Fields(list), "internal")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms() {
		if top, _, _ := strings.Cut(r.name, "/"); !internal[top] && !slices.Contains(strings.Fields(list), top) && top != "docs" {
			t.Errorf("the Makefile does not test %s: add it to ROOMS", top)
		}
	}
}
