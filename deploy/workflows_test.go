package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// job holds the tested fields of a job.
type job struct {
	Environment string            `json:"environment"`
	Permissions map[string]string `json:"permissions"`
	Steps       []struct {
		Uses string            `json:"uses"`
		With map[string]any    `json:"with"`
		Env  map[string]string `json:"env"`
		Run  string            `json:"run"`
	} `json:"steps"`
	Env map[string]string `json:"env"`
}

func jobs(t *testing.T) map[string]job {
	t.Helper()
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no workflows: %v", err)
	}
	out := map[string]job{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Jobs map[string]job `json:"jobs"`
		}
		if err := yaml.Unmarshal(raw, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, j := range w.Jobs {
			out[filepath.Base(file)+", job "+name] = j
		}
	}
	return out
}

// A tag may name something else tomorrow.
func TestWorkflowsRunWhatTheyName(t *testing.T) {
	commit, digest := regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`), regexp.MustCompile(`^[^@ ]+@sha256:[0-9a-f]{64}$`)
	for name, j := range jobs(t) {
		for _, s := range j.Steps {
			if s.Uses != "" && !commit.MatchString(s.Uses) {
				t.Errorf("%s uses %s, which is no commit", name, s.Uses)
			}
			if !strings.Contains(s.Run, "docker buildx") {
				continue
			}
			for _, option := range []struct{ has, wants, in string }{
				{"buildx create", `"image=$BUILDKIT"`, j.Env["BUILDKIT"]},
				{"buildx build", `"type=sbom,generator=$SCANNER"`, j.Env["SCANNER"]},
			} {
				if strings.Contains(s.Run, option.has) && (!strings.Contains(s.Run, option.wants) || !digest.MatchString(option.in)) {
					t.Errorf("%s runs docker %s without %s, or by the tag %q", name, option.has, option.wants, option.in)
				}
			}
		}
	}
}

// A job that may write waits for an approval, and first checks that approvals are set up.
func TestNothingIsPublishedWithoutAPerson(t *testing.T) {
	publishing := 0
	for name, j := range jobs(t) {
		writes := false
		for _, p := range j.Permissions {
			writes = writes || p == "write"
		}
		if !writes || site(j) {
			continue
		}
		publishing++
		if j.Environment != "release" || !strings.HasPrefix(j.Steps[0].Run, `[[ "$RELEASES" == protected ]] ||`) || j.Steps[0].Env["RELEASES"] != "${{ vars.RELEASES }}" {
			t.Errorf("%s has permissions %v, and is not of the environment release or does not see whether that is set up", name, j.Permissions)
		}
	}
	if publishing != 2 {
		t.Errorf("%d jobs publish, expected that of the archives and that of the images", publishing)
	}
}

// site reports whether all that a job can do is to put up the site of the documents: it writes to Pages alone, and runs
// none of the code that npm has installed.
func site(j job) bool {
	for what, p := range j.Permissions {
		if p == "write" && what != "pages" && what != "id-token" {
			return false
		}
	}
	return j.Environment == "github-pages" && len(j.Steps) == 1 && strings.HasPrefix(j.Steps[0].Uses, "actions/deploy-pages@")
}

// Releases are built with the Go version that the tests ran with.
func TestOneGoTestsAndReleases(t *testing.T) {
	for name, j := range jobs(t) {
		for _, s := range j.Steps {
			if strings.HasPrefix(s.Uses, "actions/setup-go@") && (s.With["go-version-file"] != "go.mod" || s.With["go-version"] != nil) {
				t.Errorf("%s takes another Go than go.mod names: %v", name, s.With)
			}
		}
	}
	version, names := regexp.MustCompile(`(?m)^toolchain go\d+\.\d+\.\d+$`), map[string]string{}
	for _, module := range []string{".", "deploy/release", "test/alerts", "test/internal/cluster/binaries", "test/internal/cluster/binaries/1.33", "test/internal/cluster/binaries/1.37", "test/e2e"} {
		raw, err := os.ReadFile(filepath.Join("..", module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		names[version.FindString(string(raw))] = module
	}
	if len(names) != 1 || names[""] != "" {
		t.Errorf("the modules do not name one toolchain: %v", names)
	}
}
