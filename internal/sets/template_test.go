package sets

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

func running(image, password string) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: image, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: password}}}}
	return s
}

// A word is about two templates and the side that the ordinals leave: said for a move, it does not hold for the abort.
func TestTheWordIsAboutTwoTemplatesAndADirection(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]struct {
		from plans.Side
		a, b *appsv1.StatefulSet
	}{
		"a move":                  {plans.Source, running("db:1", ""), running("db:2", "")},
		"the abort":               {plans.Destination, running("db:1", ""), running("db:2", "")},
		"another newer one":       {plans.Source, running("db:1", ""), running("db:3", "")},
		"another older one":       {plans.Source, running("db:0", ""), running("db:2", "")},
		"another field":           {plans.Source, running("db:1", "x"), running("db:2", "")},
		"the other way round too": {plans.Source, running("db:2", ""), running("db:1", "")},
	} {
		word, err := pairOf(c.from, c.a, c.b)
		if other, taken := seen[word]; err != nil || taken || !plans.IsTemplateWord(word) {
			t.Errorf("%s: %s (%v), also of %q", name, word, err, other)
		}
		seen[word] = name
	}
	restarted := running("db:1", "")
	restarted.Spec.Template.Annotations = map[string]string{restartedAt: "today"}
	if word, _ := pairOf(plans.Source, restarted, running("db:2", "")); seen[word] != "a move" {
		t.Errorf("a restart makes another word: %s", word)
	}
}

// A reason goes into the journal and into events: it shows the values of images, and of nothing that may be confidential.
func TestADifferenceShowsNoValuesButImages(t *testing.T) {
	a, b := running("db:1", "old-password"), running("db:2", "new-password")
	found, err := build.Differences(a.Spec.Template, b.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	for side, want := range map[plans.Side]string{
		plans.Source:      "spec.containers[db].env[PASSWORD].value, spec.containers[db].image: db:1 -> db:2",
		plans.Destination: "spec.containers[db].env[PASSWORD].value, spec.containers[db].image: db:2 -> db:1",
	} {
		if got := few(found, side); got != want {
			t.Errorf("%s: %q, expected %q", side, got, want)
		}
	}
	many := make([]build.Difference, 5)
	if got := few(many, plans.Source); !strings.HasSuffix(got, "and 2 more") {
		t.Errorf("five are %q", got)
	}
}

// The command gives the side that receives the wave the images of the other one, where these are the same on both sides.
func TestTheCommandThatMakesTheTemplatesAlike(t *testing.T) {
	image := []build.Difference{{Path: "spec.containers[db].image", Before: "db:1", After: "db:2"}, {Path: "spec.initContainers[init].image", Before: "i:1", After: "i:2"}}
	other := append(image[:1:1], build.Difference{Path: "spec.nodeName"})
	for name, c := range map[string]struct {
		from    plans.Side
		found   []build.Difference
		patches int
		kind    string
		want    string
	}{
		"an abort":                    {plans.Destination, image, 0, "", "`kubectl -n shop set image statefulset/web db=db:2 init=i:2`"},
		"an abort of a patched set":   {plans.Destination, image, 1, "", "`kubectl -n shop edit statefulset web`"},
		"a move":                      {plans.Source, image, 0, "", "`kubectl -n mall set image statefulset/web db=db:1 init=i:1`"},
		"a move to a patched set":     {plans.Source, image, 1, "", "`kubectl -n mall set image statefulset/web db=db:1 init=i:1`"},
		"another field":               {plans.Destination, other, 0, "", "`kubectl -n shop edit statefulset web`"},
		"a kind that is not built in": {plans.Source, image, 0, plans.SliceKind, "`kubectl -n mall edit statefulsetslice web`"},
	} {
		p := &plans.Plan{Source: plans.Ref{Namespace: "shop", Name: "web"}, Destination: plans.Ref{Namespace: "mall", Name: "web", Kind: c.kind}, Patches: make([]plans.Patch, c.patches)}
		w := Steps{Pair: clusters.Pair{Plan: p}}
		if got := comparisonOf(w).alignment(plans.StepContext{Step: plans.Step{Op: plans.Shrink, From: c.from}}, c.found); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
}
