package tutorials_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/internal/today"
)

// scene is what a page expects to be there when its commands are typed in.
type scene struct {
	after  []string // pages whose commands were typed in before
	before string   // what its reader has, before these pages
	then   string   // and after them
	in     string   // the folder of the repository that its reader is in; "" for one of their own
}

// web is the application of the tutorials, in one namespace, and the namespace that it moves to.
const web = `
kubectl --context east apply -f docs/tutorials/web.yaml
kubectl --context east -n shop rollout status statefulset web
kubectl --context west create namespace shop
`

// kinds makes kinds of other projects known to both clusters, for pages that say how their objects are quietened or
// copied. No controller is there.
const kinds = `
kind() { # GROUP VERSION KIND PLURAL
  for c in east west; do
    printf '{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%s.%s", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}, "spec": {"group": "%s", "scope": "Namespaced", "names": {"kind": "%s", "plural": "%s", "singular": "%s"}, "versions": [{"name": "%s", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}' "$4" "$1" "$1" "$3" "$4" "${3,,}" "$2" | kubectl --context $c apply -f -
    # kubectl takes a list of conditions that is not there yet for an error. The names come together with it.
    kubectl --context $c wait --for=jsonpath='{.status.acceptedNames.kind}'=$3 crd/$4.$1
    kubectl --context $c wait --for=condition=Established crd/$4.$1
  done
}
object() { # NAMESPACE APIVERSION KIND NAME
  for try in 1 2 3 4 5 6 7 8 9 10; do
    printf '{"apiVersion": "%s", "kind": "%s", "metadata": {"namespace": "%s", "name": "%s"}, "spec": {}}' "$2" "$3" "$1" "$4" | kubectl --context east apply -f - && break
    sleep 0.5
  done
}
`

// scenes are those of the pages that need more than the application of the tutorials.
func scenes() map[string]scene {
	const orchestrator, running = "docs/orchestrator/install.md", "docs/orchestrator/running.md"
	return map[string]scene{
		orchestrator:                    {before: web},
		"docs/dashboard.md":             {before: web, after: []string{orchestrator}},
		"docs/notifications.md":         {before: `ID=msg_p5jXN8AQM9LWM0D4loKWxJek TIMESTAMP=1614265330 BODY='{"test": 2432232314}' KEY=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw` + "\n", after: []string{orchestrator}},
		running:                         {before: web, after: []string{orchestrator}},
		"docs/orchestrator/security.md": {before: web, after: []string{orchestrator}, then: "stsmigrate plan web -n shop --context east --to-context west --out web.yaml\n"},
		"docs/releases.md":              {before: web, after: []string{orchestrator, running}},
		"docs/checks.md":                {before: web + "kubectl --context east create namespace mall\n"},
		"docs/watching.md":              {before: web + "stsmigrate plan web -n shop --context east --to-context west --out web.yaml\n"},
		"docs/drivers.md":               {before: `kubectl --context west apply -f - <<< '{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "disk.csi.example.com"}}'` + "\n"},
		"docs/slicecontroller.md":       {in: "."},
		"docs/dependencies.md": {before: web + kinds + `
kind cert-manager.io v1 Certificate certificates
kind monitoring.coreos.com v1 ServiceMonitor servicemonitors
kind monitoring.coreos.com v1 PodMonitor podmonitors
kind gateway.networking.k8s.io v1 HTTPRoute httproutes
kind external-secrets.io v1 ExternalSecret externalsecrets
object shop cert-manager.io/v1 Certificate web-tls
kubectl --context east -n shop create role web --verb=get --resource=pods
awk '$0 == "\140\140\140yaml" {text = ""; next} $0 == "\140\140\140" && text ~ /west-ssd/ {printf "%s", text; exit} {text = text $0 "\n"}' docs/dependencies.md > west.yaml
kubectl --context west label nodes --all topology.kubernetes.io/region=west
kubectl --context west create priorityclass high --value=1000
kubectl --context west -n shop create secret docker-registry west --docker-server=west.example --docker-username=a --docker-password=b
kubectl --context west get storageclass -o json | jq '.items[0] | .metadata = {name: "west-ssd"}' | kubectl --context west apply -f -
(until kubectl --context west -n shop patch certificate web-tls --type merge -p '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'; do sleep 0.3; done) 2> /dev/null & # as its controller does
`},
		"docs/writers.md": {before: web + kinds + `
kind keda.sh v1alpha1 ScaledObject scaledobjects
kind autoscaling.k8s.io v1 VerticalPodAutoscaler verticalpodautoscalers
kind argoproj.io v1alpha1 Application applications
kubectl --context east create namespace argocd
kubectl --context east -n shop apply -f - <<< '{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}, "maxReplicas": 3}}'
object shop keda.sh/v1alpha1 ScaledObject web
object shop autoscaling.k8s.io/v1 VerticalPodAutoscaler web
object argocd argoproj.io/v1alpha1 Application shop
`},
	}
}

// unplayed returns why a block is not played here, or "". A mark of another form is refused.
func (b block) unplayed() (string, error) {
	why, isNot := strings.CutPrefix(b.mark, "not run: ")
	switch {
	case b.mark == "" || strings.HasPrefix(b.mark, "run until: "):
		return "", nil
	case isNot && why != "":
		return why, nil
	case b.mark == "run by .ci/run":
		raw, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
		if line := strings.TrimSpace(b.commands); err == nil && !regexp.MustCompile(`(?m)^ *`+regexp.QuoteMeta(line)+`$`).Match(raw) {
			err = fmt.Errorf(".ci/run has no line %q", line)
		}
		return "by .ci/run", err
	}
	return "", fmt.Errorf("the mark %q is none of <!-- not run: REASON -->, <!-- run until: OUTPUT --> and <!-- run by .ci/run -->", b.mark)
}

// script returns the commands. Those that do not end are stopped once they have printed what their mark says.
func (b block) script(n int) string {
	until, endless := strings.CutPrefix(b.mark, "run until: ")
	if !endless {
		return b.commands
	}
	return fmt.Sprintf(`setsid bash -euo pipefail -c %s > "$TMPDIR/until-%d" 2>&1 &
for _ in {1..600}; do grep -qF -- %s "$TMPDIR/until-%[2]d" && break; sleep 0.2; done
cat "$TMPDIR/until-%[2]d"; grep -qF -- %[3]s "$TMPDIR/until-%[2]d"; kill -- -$!
`, quoted(b.commands), n, quoted(until))
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// played returns the blocks of a page that are played.
func played(t *testing.T, page string) (out []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range parse(string(text)) {
		why, err := b.unplayed()
		if err != nil {
			t.Errorf("%s: %v:\n%s", page, err, b.commands)
		}
		if why == "" {
			if b.commands = b.script(len(out)); page == "docs/cli.md" {
				b.shown = nil // of the next command
			}
			out = append(out, b)
		}
	}
	return out
}

// others returns README.md and the pages outside the tutorials, which are played by their own test.
func others(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		page, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", "tutorials", "decisions"}, d.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md" && page != "docs/walkthrough.md": // played on kind
			out = append(out, page)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every block of commands of every page is played, from that very page, or says why it is not. README is played every
// day, and of the other pages a half each day. TUTORIALS=all plays all of them.
func TestCommandsOfPagesWorkAsTheyAreWritten(t *testing.T) {
	day, every, n := today.Day("TUTORIALS_DAY"), os.Getenv("TUTORIALS") == "all", 0
	for _, page := range others(t) {
		blocks := played(t, page)
		if len(blocks) == 0 {
			continue
		}
		n++
		t.Run(page, func(t *testing.T) {
			if !every && (n+day)%2 == 1 && page != "README.md" {
				t.Skip("played tomorrow; TUTORIALS=all plays every page")
			}
			t.Parallel()
			s, ok := scenes()[page]
			if !ok {
				s.before = web
			}
			var before strings.Builder
			before.WriteString(s.before)
			for _, earlier := range s.after {
				for _, b := range played(t, earlier) {
					before.WriteString(b.commands)
				}
			}
			before.WriteString(s.then)
			b := newBench(t)
			if s.in != "" {
				b.dir = filepath.Join(root, s.in)
			}
			all := append([]block{{commands: before.String()}}, blocks...)
			b.compare(all, b.play(all))
		})
	}
	if n < 10 {
		t.Errorf("only %d pages have commands", n)
	}
}

func TestMarksOfBlocks(t *testing.T) {
	for mark, want := range map[string]string{"": "", "run until: ready": "", "not run: needs a cloud": "needs a cloud"} {
		if why, err := (block{mark: mark}).unplayed(); why != want || err != nil {
			t.Errorf("%q: %q, %v, expected %q", mark, why, err, want)
		}
	}
	for _, b := range []block{{mark: "not run: "}, {mark: "run by another page"}, {mark: "run by .ci/run", commands: "make nothing\n"}} {
		if why, err := b.unplayed(); err == nil {
			t.Errorf("%q is accepted: %q", b.mark, why)
		}
	}
}

// A command outside a fence would escape the test.
func TestCommandsAreInFences(t *testing.T) {
	indented := regexp.MustCompile(`(?m)^(?: {4,}|\t)(?:\$ )?(?:kubectl|stsmigrate|helm|docker) .*$`)
	fences := regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	for _, page := range others(t) {
		if page == "docs/cli.md" {
			continue // the help of the program, whose examples are fenced
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range indented.FindAllString(fences.ReplaceAllString(string(text), ""), -1) {
			t.Errorf("%s: %s is not in a fence of its own", page, strings.TrimSpace(line))
		}
		if other := regexp.MustCompile("(?m)^ *```(bash|shell|console)$").FindString(string(text)); other != "" {
			t.Errorf("%s: expected ```sh instead of %s", page, strings.TrimSpace(other))
		}
	}
}
