package preview

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestTheFieldsInWhichPlansDiffer(t *testing.T) {
	a, b := planstest.Three(), planstest.Three()
	b.ID, b.Hash, b.Made = "other", "other", &plans.Made{At: metav1.NewTime(time.Unix(1, 0)), By: "anna"}
	if got, err := Diff(a, b); err != nil || len(got) > 0 {
		t.Errorf("only made at another time: %v %v", got, err)
	}
	b.MaxUnavailable, b.Destination.Namespace, b.Ignored = a.MaxUnavailable+1, "plaza", []string{"nodes-fit"}
	b.Claims = nil
	got, err := Diff(a, b)
	want := []Difference{
		{"claims[0].mode", "rebind", ""},
		{"claims[0].template", "data", ""},
		{"destination.namespace", "mall", "plaza"},
		{"ignored[0]", "", "nodes-fit"},
		{"maxUnavailable", "1", "2"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %+v", err, got)
	}
}
