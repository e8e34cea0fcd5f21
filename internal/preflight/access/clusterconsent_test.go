package access

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestRevokeTakesTheDisksOfAPlanAway(t *testing.T) {
	p := checktest.ConsentPlan()
	other := checktest.ConsentPlan()
	other.ID = "web-9z9z"
	on, _ := granted(p, other)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: VolumesMap}, Data: map[string]string{"pv-0": "plan " + p.ID + "\n", "pv-9": "plan db-1\n"}}
	if err := on[plans.Destination].Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	gone, err := Revoke(t.Context(), p, plans.Destination, on)
	if err != nil || !slices.Contains(gone, "the volumes that the cluster agrees to (ConfigMap kube-system/stsmigrate-volumes)") {
		t.Errorf("%v: %q", err, gone)
	}
	if left, err := AgreedVolumes(t.Context(), on[plans.Destination], plans.Destination); err != nil || len(left.Data) != 1 || left.Data["pv-9"] == "" {
		t.Errorf("%v: %+v", err, left)
	}
}

func TestWhatAClusterAgreesToOfOtherPlansIsKept(t *testing.T) {
	p := &plans.Plan{ID: "web-abc"}
	have := &corev1.ConfigMap{Data: map[string]string{"pv-9": "plan db-1\nclaim a/b\n", "pv-1": "plan web-abc\nclaim mall/old\n", "pv-8": "plan web-abcd\n"}}
	next, err := AgreeVolumes(p, map[string]string{"pv-0": "plan web-abc\nclaim mall/new\n"}, have)
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(next.Data)), []string{"pv-0", "pv-8", "pv-9"}) {
		t.Errorf("%v: %v", err, next)
	}
	if next, less := WithdrawVolumes(p, next); !less || !slices.Equal(slices.Sorted(maps.Keys(next.Data)), []string{"pv-8", "pv-9"}) {
		t.Errorf("taken away: %v, %v", less, next.Data)
	}
	if _, less := WithdrawVolumes(&plans.Plan{ID: "web"}, have); less {
		t.Error("what is of plans whose ID begins alike is taken away")
	}
	if _, err := AgreeVolumes(p, map[string]string{"pv-0": strings.Repeat("x", largestMap)}, have); err == nil || !strings.Contains(err.Error(), "a ConfigMap holds 1048576") {
		t.Errorf("too much for a ConfigMap: %v", err)
	}
}
