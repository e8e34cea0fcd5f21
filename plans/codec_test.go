package plans_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func built(t *testing.T) (*plans.Plan, string) {
	t.Helper()
	p, err := build.Plan(planstest.Inputs())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := plans.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, string(raw)
}

func TestAPlanSurvivesItsFile(t *testing.T) {
	p, raw := built(t)
	again, err := plans.DecodePlan([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, again); diff != "" {
		t.Error(diff)
	}
}

func TestAPlanThatIsNotAsItWasMadeIsRefused(t *testing.T) {
	_, raw := built(t)
	tests := map[string]struct{ file, want string }{
		"edited":        {strings.Replace(raw, "maxUnavailable: 1", "maxUnavailable: 2", 1), "was edited"},
		"other version": {strings.Replace(raw, plans.APIVersion, "stsmigrate.dev/v9", 1), "is of version"},
		"other kind":    {strings.Replace(raw, "kind: Plan", "kind: Pod", 1), `kind is "Pod"`},
		"unknown field": {raw + "surprise: true\n", "was edited"},
		"a field twice": {strings.Replace(raw, "kind: Plan", "kind: Plan\nstart: 2", 1), "already set in map"},
		"not YAML":      {"a: b: c", "malformed YAML"},
		"empty":         {"", `kind is ""`},
		"aliases":       {raw + "more: &more [a, *more]\n", "malformed YAML: its YAML aliases (*name) stand for more than 2 MiB"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := plans.DecodePlan([]byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, expected %q in it", err, tt.want)
			}
		})
	}
}

func TestAChangedWorldIsNamed(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{UID: "b"}}
	was, err := plans.Fingerprints(planstest.Set(2, 3), nil, budget)
	if err != nil {
		t.Fatal(err)
	}
	if got := was.Changed(was); got != nil {
		t.Errorf("an unchanged world is reported as %v", got)
	}
	now, err := plans.Fingerprints(planstest.Set(2, 4), planstest.Set(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(was.Changed(now), "; ")
	want := "the spec of the source set (replicas 3 -> 4); the PodDisruptionBudget of the source (another object, or none); the destination set, which was absent, exists"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARecreatedSetIsNamed(t *testing.T) {
	source, existing := planstest.Set(2, 3), planstest.Set(0, 0)
	was, err := plans.Fingerprints(source, existing, nil)
	if err != nil {
		t.Fatal(err)
	}
	source.UID, existing.UID = source.UID+"2", existing.UID+"2"
	now, err := plans.Fingerprints(source, existing, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the source set was deleted and recreated", "the destination set was deleted and recreated"}
	if diff := cmp.Diff(want, was.Changed(now)); diff != "" {
		t.Error(diff)
	}
}

func TestMigrationFileIsReadStrictly(t *testing.T) {
	good := "apiVersion: " + plans.APIVersion + "\nkind: Migration\nmetadata: {name: web}\nspec:\n  source: {context: east, namespace: shop, name: web}\n  destination: {context: west}\n  maxUnavailable: 2\n"
	m, err := plans.DecodeMigration([]byte(good))
	if err != nil || m.Spec.Source.Name != "web" || m.Spec.Destination.Context != "west" || plans.Unavailable(m.Spec.MaxUnavailable, 5) != 2 {
		t.Errorf("got %+v, %v", m, err)
	}
	if m, err := plans.DecodeMigration([]byte(strings.Replace(good, "able: 2", "able: 25%", 1))); err != nil || plans.Unavailable(m.Spec.MaxUnavailable, 5) != 2 {
		t.Errorf("a percentage: %+v, %v", m, err)
	}
	for bad, want := range map[string]string{
		strings.Replace(good, "maxUnavailable", "maxUnavailabel", 1):                "unknown field",
		strings.Replace(good, "name: web}\n  dest", "name: ''}\n  dest", 1):         "source.name is empty",
		strings.Replace(good, "{context: west}", "{context: west, name: other}", 1): "pods keep their names",
		strings.Replace(good, "able: 2", "able: 0", 1):                              "spec.maxUnavailable 0: expected a number from 1, or a percentage",
		strings.Replace(good, "able: 2", "able: half", 1):                           "spec.maxUnavailable half: expected a number from 1, or a percentage",
		strings.Replace(good, plans.APIVersion, "stsmigrate.dev/v0", 1):             "is of version",
		strings.Replace(good, "kind: Migration", "kind: Plan", 1):                   `kind is "Plan"`,
	} {
		if _, err := plans.DecodeMigration([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q in it", err, want)
		}
	}
}

// What asks for a share of the ordinals is about the plan that was made of it, however it is written.
func TestAPlanIsOfTheRequestThatItWasMadeOf(t *testing.T) {
	p := planstest.Three() // of 3 ordinals, 1 may be unavailable
	for text, differs := range map[string]string{"1": "", "33%": "", "34%": "maxUnavailable", "2": "maxUnavailable"} {
		d := p.Declared()
		v, err := plans.ReadUnavailable("spec.maxUnavailable", text)
		if err != nil {
			t.Fatal(err)
		}
		d.MaxUnavailable = &v
		if got := p.Differs(&d); got != differs {
			t.Errorf("%s: differs in %q, expected %q", text, got, differs)
		}
	}
}
