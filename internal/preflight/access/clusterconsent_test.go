package access

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/api/consent"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// disk is what a cluster agrees to of a volume, with its spec as JSON.
func disk(name, plan, spec string) consent.Volume {
	return consent.Volume{Name: name, Plan: plan, Spec: runtime.RawExtension{Raw: []byte(spec)}}
}

// agreeing is the object of a cluster that agrees to volumes, each of its plan.
func agreeing(t *testing.T, volumes ...consent.Volume) *unstructured.Unstructured {
	t.Helper()
	var out *unstructured.Unstructured
	for _, v := range volumes {
		have := []consent.Volume{v}
		for _, had := range agreedTo(t, out) {
			if had.Plan == v.Plan {
				have = append(have, had)
			}
		}
		next, err := AgreeVolumes(&plans.Plan{ID: v.Plan}, have, out)
		if err != nil {
			t.Fatal(err)
		}
		out = next
	}
	return out
}

func agreedTo(t *testing.T, o *unstructured.Unstructured) []consent.Volume {
	t.Helper()
	var out consent.VolumeConsent
	if o == nil {
		return nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out.Spec.Volumes
}

// told returns the volumes with their plans.
func told(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	var out []string
	for _, v := range agreedTo(t, o) {
		out = append(out, v.Name+"="+v.Plan+string(v.Spec.Raw))
	}
	return strings.Join(out, " ")
}

func TestRevokeTakesTheDisksOfAPlanAway(t *testing.T) {
	p := checktest.ConsentPlan()
	other := checktest.ConsentPlan()
	other.ID = "web-9z9z"
	old := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: OldVolumesMap}, Data: map[string]string{"pv-0": "plan " + p.ID + "\nclaim a/b\n", "pv-9": "plan db-1\n"}}
	}
	for name, there := range map[string][]client.Object{
		"what the policies of this release read":         {agreeing(t, disk("pv-0", p.ID, "{}"), disk("pv-9", "db-1", "{}"))},
		"what those of an older release may still read":  {old()},
		"both, where the policies were installed lately": {old(), agreeing(t, disk("pv-0", p.ID, "{}"), disk("pv-9", "db-1", "{}"))},
	} {
		t.Run(name, func(t *testing.T) {
			on, _ := granted(p, other)
			for _, o := range there {
				if err := on[plans.Destination].Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			gone, err := Revoke(t.Context(), p, plans.Destination, on)
			if err != nil || !slices.Contains(gone, "the volumes that the cluster agrees to (VolumeConsent cluster)") {
				t.Errorf("%v: %q", err, gone)
			}
			if left, err := AgreedVolumes(t.Context(), on[plans.Destination], plans.Destination); err != nil || left != nil && told(t, left) != "pv-9=db-1{}" {
				t.Errorf("%v: %+v", err, left)
			}
			if _, plan, err := OldVolumes(t.Context(), on[plans.Destination]); err != nil || plan != nil && fmt.Sprint(plan) != "map[pv-9:db-1]" {
				t.Errorf("%v: %v", err, plan)
			}
		})
	}
}

func TestWhatAClusterAgreesToOfOtherPlansIsKept(t *testing.T) {
	p := &plans.Plan{ID: "web-abc"}
	have := agreeing(t, disk("pv-9", "db-1", `{"later":{"field":1}}`), disk("pv-1", "web-abc", "{}"), disk("pv-8", "web-abcd", "{}"))
	next, err := AgreeVolumes(p, []consent.Volume{disk("pv-0", "web-abc", `{"nfs":{}}`)}, have)
	if want := `pv-0=web-abc{"nfs":{}} pv-8=web-abcd{} pv-9=db-1{"later":{"field":1}}`; err != nil || told(t, next) != want {
		t.Errorf("%v: %s, expected %s", err, told(t, next), want)
	}
	if next, less := WithdrawVolumes(p, next); !less || told(t, next) != `pv-8=web-abcd{} pv-9=db-1{"later":{"field":1}}` {
		t.Errorf("taken away: %v, %s", less, told(t, next))
	}
	if _, less := WithdrawVolumes(&plans.Plan{ID: "web"}, have); less {
		t.Error("what is of plans whose ID begins alike is taken away")
	}
	if _, err := AgreeVolumes(p, []consent.Volume{disk("pv-0", "web-abc", `{"nfs":{"path":"`+strings.Repeat("x", largestConsent)+`"}}`)}, have); err == nil || !strings.Contains(err.Error(), "the VolumeConsent holds 1048576") {
		t.Errorf("too much for an object: %v", err)
	}
}

func TestTheLinesThatAClusterHasNotAgreedToAreNamed(t *testing.T) {
	const all = `{"csi":{"driver":"d","fsType":"ext4","volumeAttributes":{"a":"b"}},"mountOptions":["nosuid"],"claimRef":{"namespace":"mall","name":"data-web-0"}}`
	for name, c := range map[string]struct {
		have *unstructured.Unstructured
		want []string
	}{
		"all of it":      {have: agreeing(t, disk("pv-0", "web-abc", all))},
		"no such object": {want: []string{"name: pv-0"}},
		"no such volume": {have: agreeing(t, disk("pv-1", "web-abc", all)), want: []string{"name: pv-0"}},
		"another plan":   {have: agreeing(t, disk("pv-0", "db-1", all)), want: []string{`plan: "web-abc"`}},
		"fields less":    {have: agreeing(t, disk("pv-0", "web-abc", `{"csi":{"driver":"d","volumeAttributes":{"a":"b"}},"claimRef":{"namespace":"mall","name":"data-web-0"}}`)), want: []string{`spec.csi.fsType: "ext4"`, `spec.mountOptions: ["nosuid"]`}},
		"another value":  {have: agreeing(t, disk("pv-0", "web-abc", strings.Replace(all, `"b"`, `"c"`, 1))), want: []string{`spec.csi.volumeAttributes.a: "b"`}},
		"a field more":   {have: agreeing(t, disk("pv-0", "web-abc", strings.Replace(all, `"d",`, `"d","readOnly":true,`, 1))), want: []string{"without spec.csi.readOnly: true"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Unagreed(disk("pv-0", "web-abc", all), c.have); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v: %q, expected %q", err, got, c.want)
			}
		})
	}
}
