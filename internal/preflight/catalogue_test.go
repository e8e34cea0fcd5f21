package preflight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

var update = flag.Bool("update", false, "write the checks into docs/checks.md") //nolint:gochecknoglobals // a flag of the test

// before and after are where docs/checks.md has what is generated.
const before, after = "<!-- The catalogue follows: go test ./internal/preflight -update writes it. -->\n", "<!-- The catalogue ends here. -->\n"

// wrapped returns a text in lines of 110 columns.
func wrapped(text string) string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; len(lines[last])+1+len(word) <= 110 {
			lines[last] = strings.TrimPrefix(lines[last]+" "+word, " ")
			continue
		}
		lines = append(lines, word)
	}
	return strings.Join(lines, "\n")
}

// sections is the catalogue as it stands in docs/checks.md: a table of each group, and a section of each check.
func sections(t *testing.T) string {
	t.Helper()
	whys, err := Whys()
	if err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes"}
	often := map[again]string{standing: "every 30 s", always: "yes"}
	again := map[again]string{never: "Once, before the first write.", standing: "Also before a wave, if it has not passed within 30 seconds.", always: "Also before every wave."}
	returns := func(c row) string {
		switch {
		case c.back == healthy && (c.accepted || c.ignorable):
			return "serving, accepted"
		case c.back == healthy:
			return "serving"
		}
		return yes[c.back == everyWave]
	}
	var b strings.Builder
	b.WriteString("\n| group | check | at worst | can be ignored | before every ordinal | of an abort | without a destination |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range catalogue() {
		fmt.Fprintf(&b, "| %s | [%[2]s](#%[2]s) | %s | %s | %s | %s | %s |\n", c.group, c.name, c.worst, yes[c.ignorable], often[c.wave], returns(c), yes[c.alone])
	}
	group := ""
	for _, c := range catalogue() {
		if c.group != group {
			group = c.group
			fmt.Fprintf(&b, "\n## Group %s\n", group) // a group and a check may have the same name
		}
		level := "FAIL: the plan does not begin until it passes."
		switch {
		case c.worst == check.Warn:
			level = "WARN: worth knowing."
		case c.ignorable:
			level = fmt.Sprintf("FAIL: the plan does not begin until it passes, or with `--ignore %s`.", c.name)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s\n\n", c.name, wrapped("**Wants:** "+c.about+"."), wrapped("**Why:** "+whys[c.name].Why))
		fmt.Fprintf(&b, "%s\n\n%s\n", wrapped("**What to do:** "+c.remedy+"."+more(whys[c.name].More)), wrapped("**At worst** "+level+" "+again[c.wave]))
	}
	return b.String()
}

// more returns a link to a page of docs/.
func more(page string) string {
	if page == "" {
		return ""
	}
	page = strings.TrimPrefix(page, "docs/")
	return fmt.Sprintf(" More: [%s](%s).", strings.TrimSuffix(strings.SplitN(page, "#", 2)[0], ".md"), page)
}

func TestThePageOfTheChecksIsTheCatalogue(t *testing.T) {
	const file = "../../docs/checks.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), before)
	have, tail, ended := strings.Cut(rest, after)
	if !found || !ended {
		t.Fatalf("%s does not have the lines %q and %q", file, before, after)
	}
	want := sections(t)
	if *update {
		if err := os.WriteFile(file, []byte(head+before+want+"\n"+after+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want+"\n" {
		t.Errorf("%s is not the catalogue: go test ./internal/preflight -update: %s", file, cmp.Diff(want+"\n", have))
	}
}

// Every check says why it is there, and nothing else does.
func TestEveryCheckSaysWhyItIsThere(t *testing.T) {
	whys, err := Whys()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range catalogue() {
		if len(whys[c.name].Why) < 40 {
			t.Errorf("check %s does not say in why.yaml why it is there", c.name)
		}
		delete(whys, c.name)
	}
	if len(whys) > 0 {
		t.Errorf("why.yaml has what is no check: %v", whys)
	}
}

func TestTheCatalogueIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range catalogue() {
		if seen[c.name] || c.name == "" || c.group == "" || c.about == "" || c.remedy == "" || c.run == nil {
			t.Errorf("check %q: named twice, or without group, words or function", c.name)
		}
		seen[c.name] = true
		if c.worst == check.Warn && !c.ignorable {
			t.Errorf("check %s only warns, and cannot be ignored", c.name)
		}
		if c.worst == check.Warn && c.wave != never {
			t.Errorf("check %s only warns, and is asked again before every ordinal, where warnings are not given", c.name)
		}
	}
}

func TestOnlyChecksThatMayBeIgnoredAre(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  []string
		say   string
	}{
		{},
		{names: []string{"old-names", "nodes-fit", "old-names"}, want: []string{"nodes-fit", "old-names"}},
		{names: []string{"nodes-fit", "claims-bound"}, say: "check claims-bound cannot be ignored"},
		{names: []string{"node-fit"}, say: `no check "node-fit"; those that can be ignored: `},
	} {
		got, err := Ignorable(c.names)
		if (err != nil) != (c.say != "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v: %v, expected %q", c.names, err, c.say)
		}
		if diff := cmp.Diff(c.want, got); err == nil && diff != "" && len(got)+len(c.want) > 0 {
			t.Errorf("%v: %s", c.names, diff)
		}
	}
}

// A declaration, which no command has read, names checks too. No plan is made that would not do as it says.
func TestNoPlanIsMadeThatIgnoresWhatItMayNot(t *testing.T) {
	for _, name := range []string{"node-fit", "claims-bound"} {
		_, err := Draft(t.Context(), nil, plans.Ref{}, plans.Ref{}, Request{Name: "web", ID: "abc", Spec: plans.Spec{Ignore: []string{"nodes-fit", name}}})
		if err == nil || !strings.HasPrefix(err.Error(), "ignore: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A failed check is a warning where the plan ignores it, if the check is ignorable at all.
func TestWhatAPlanIgnoresDoesNotBlockIt(t *testing.T) {
	finds := func(l check.Level) func(context.Context, check.Inspection) ([]check.Finding, error) {
		return func(context.Context, check.Inspection) ([]check.Finding, error) {
			return []check.Finding{{Level: l, Object: "it", Saw: "a", Want: "b", Remedy: "c"}}, nil
		}
	}
	checks := []row{
		{name: "hard", run: finds("")},
		{name: "soft", ignorable: true, run: finds(check.Fail)},
		{name: "mild", ignorable: true, run: finds(check.Warn)},
		{name: "fine", run: func(context.Context, check.Inspection) ([]check.Finding, error) { return nil, nil }},
	}
	for _, c := range []struct {
		ignored              []string
		failed, warned, pass int
	}{
		{nil, 2, 1, 1},
		{[]string{"soft"}, 1, 1, 1},
		{[]string{"hard", "mild", "soft"}, 1, 0, 1},
	} {
		i := check.Inspect(&plans.Plan{Ignored: c.ignored}, nil)
		results, err := results(t.Context(), i, checks)
		r := Report{Checks: results}
		pass := 0
		for _, one := range results {
			if one.Level == check.Pass {
				pass++
			}
		}
		if err != nil || len(r.Failed()) != c.failed || len(r.Warned()) != c.warned || pass != c.pass {
			t.Errorf("ignoring %v: failed %v, warned %v, passed %d (%v)", c.ignored, r.Failed(), r.Warned(), pass, err)
		}
	}
	broken := errors.New("no answer")
	_, err := results(t.Context(), check.Inspect(&plans.Plan{}, nil), []row{{name: "lost", run: func(context.Context, check.Inspection) ([]check.Finding, error) {
		return nil, errors.New(plans.Gate{}.Kind())
	}}})
	if !errors.As(err, new(plans.Panic)) || !strings.Contains(err.Error(), "plans.Gate.Kind") {
		t.Errorf("a check that panics is %v", err)
	}
	_, err = results(t.Context(), check.Inspect(&plans.Plan{}, nil), []row{{name: "mute", run: func(context.Context, check.Inspection) ([]check.Finding, error) { return nil, broken }}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "check mute") {
		t.Errorf("a check that could not look gave %v", err)
	}
}

func TestVersionsAreComparedWithThePlans(t *testing.T) {
	const from, to = plans.Source, plans.Destination
	for _, c := range []struct {
		name      string
		now, then map[plans.Side]string
		want      string // level: what was seen
	}{
		{"equal", map[plans.Side]string{from: "v1.36.3", to: "v1.36.3"}, nil, ""},
		{"a patch apart, as vendors write it", map[plans.Side]string{from: "v1.36.3+k3s1", to: "v1.36.1-gke.7"}, nil, ""},
		{"a newer destination", map[plans.Side]string{from: "v1.29.0", to: "v1.32.0"}, nil, ""},
		{"a much newer destination", map[plans.Side]string{from: "v1.29.0", to: "v1.33.0"}, nil, "WARN: the source is Kubernetes v1.29.0, the destination v1.33.0"},
		{"an older destination", map[plans.Side]string{from: "v1.32.0", to: "v1.31.0"}, nil, "WARN: the source is Kubernetes v1.32.0, the destination v1.31.0"},
		{"a destination without ordinals", map[plans.Side]string{from: "v1.26.0", to: "v1.26.4"}, nil, "FAIL: it is Kubernetes v1.26.4, which does not keep a set's start ordinal"},
		{"an old source", map[plans.Side]string{from: "v1.25.0", to: "v1.27.0"}, nil, ""},
		{"a destination that was downgraded", map[plans.Side]string{from: "v1.30.0", to: "v1.30.0"}, map[plans.Side]string{from: "v1.30.0", to: "v1.31.0"}, "FAIL: it is Kubernetes v1.30.0, and was v1.31.0 when the plan was made"},
		{"one that was upgraded", map[plans.Side]string{from: "v1.30.0", to: "v1.31.0"}, map[plans.Side]string{from: "v1.30.0", to: "v1.30.0"}, ""},
		{"one that does not say", map[plans.Side]string{from: "v1.30.0"}, nil, "WARN: it does not say its version"},
	} {
		var got []string
		for _, f := range versionFindings(&plans.Plan{Versions: c.then}, c.now) {
			if f.Level == "" {
				f.Level = check.Fail
			}
			got = append(got, string(f.Level)+": "+f.Saw)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A check's function has the name of the check, so that a reader finds it.
func TestTheFunctionOfACheckIsNamedForItsID(t *testing.T) {
	for _, c := range catalogue() {
		full := runtime.FuncForPC(reflect.ValueOf(c.run).Pointer()).Name()
		words := strings.Split(full[strings.LastIndexByte(full, '/')+1:], ".") // the package, and the function
		want := strings.ReplaceAll(c.name, "-", "")
		if !strings.EqualFold(words[1], want) && !strings.EqualFold(words[0]+words[1], want) {
			t.Errorf("check %s is made by %s", c.name, full)
		}
	}
}
