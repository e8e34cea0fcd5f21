package plans

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func set(start, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set-uid"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start}},
	}
}

func inputs() Inputs {
	return Inputs{
		Name: "web", ID: "abc", MaxUnavailable: 1, Set: set(2, 3),
		Source:      Ref{Cluster: "one", Context: "east", Namespace: "shop", Name: "web"},
		Destination: Ref{Cluster: "two", Context: "west", Namespace: "shop", Name: "web"},
	}
}

func built(t *testing.T) (*Plan, string) {
	t.Helper()
	p, err := Build(inputs())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, string(raw)
}

func TestAPlanSurvivesItsFile(t *testing.T) {
	p, raw := built(t)
	again, err := DecodePlan([]byte(raw))
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
		"other version": {strings.Replace(raw, APIVersion, "stsmigrate.dev/v9", 1), "is of version"},
		"other kind":    {strings.Replace(raw, "kind: Plan", "kind: Pod", 1), `kind is "Pod"`},
		"unknown field": {raw + "surprise: true\n", "was edited"},
		"a field twice": {strings.Replace(raw, "kind: Plan", "kind: Plan\nstart: 2", 1), "already set in map"},
		"not YAML":      {"a: b: c", "malformed YAML"},
		"empty":         {"", `kind is ""`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := DecodePlan([]byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, expected %q in it", err, tt.want)
			}
		})
	}
}

func TestBuildRefusesWhatCannotBeMoved(t *testing.T) {
	tests := map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"one place":   {func(in *Inputs) { in.Destination.Cluster = "one" }, "both"},
		"no replicas": {func(in *Inputs) { in.Set = set(0, 0) }, "0 replicas"},
		"bad name":    {func(in *Inputs) { in.Name = "Web!" }, "DNS label"},
		"no budget":   {func(in *Inputs) { in.MaxUnavailable = 0 }, "budget is 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputs()
			tt.change(&in)
			if _, err := Build(in); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, expected %q in it", err, tt.want)
			}
		})
	}
}

func TestAChangedWorldIsNamed(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{UID: "b"}}
	was, err := Fingerprints(set(2, 3), nil, budget)
	if err != nil {
		t.Fatal(err)
	}
	if got := was.Changed(was); got != nil {
		t.Errorf("an unchanged world is reported as %v", got)
	}
	now, err := Fingerprints(set(2, 4), set(0, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(was.Changed(now), "; ")
	want := "the spec of the source set; the PodDisruptionBudget of the source (another object, or none); the destination set, which was absent, exists"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMigrationFileIsReadStrictly(t *testing.T) {
	good := "apiVersion: " + APIVersion + "\nkind: Migration\nmetadata: {name: web}\nspec:\n  source: {context: east, namespace: shop, name: web}\n  destination: {context: west}\n  maxUnavailable: 2\n"
	m, err := DecodeMigration([]byte(good))
	if err != nil || m.Spec.Source.Name != "web" || m.Spec.Destination.Context != "west" || m.Spec.MaxUnavailable != 2 {
		t.Errorf("got %+v, %v", m, err)
	}
	for bad, want := range map[string]string{
		strings.Replace(good, "maxUnavailable", "maxUnavailabel", 1):                "unknown field",
		strings.Replace(good, "name: web}\n  dest", "name: ''}\n  dest", 1):         "source.name is empty",
		strings.Replace(good, "{context: west}", "{context: west, name: other}", 1): "pods keep their names",
		strings.Replace(good, APIVersion, "stsmigrate.dev/v0", 1):                   "is of version",
		strings.Replace(good, "kind: Migration", "kind: Plan", 1):                   `kind is "Plan"`,
	} {
		if _, err := DecodeMigration([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q in it", err, want)
		}
	}
}
