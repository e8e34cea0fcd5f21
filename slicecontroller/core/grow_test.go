package core

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

func grows(s *Set) { s.ClaimsGrow = true }

// disk adds a claim template of 1Gi.
func disk(name string) func(*Set) {
	return func(s *Set) {
		claims(name)(s)
		s.Spec.VolumeClaimTemplates[len(s.Spec.VolumeClaimTemplates)-1].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
}

// bound gives all claims a volume of their requested size, and changes the request of their templates.
func (s *fixture) bound(templates string) *fixture {
	for _, c := range s.claims {
		c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, c.Spec.Resources.Requests.DeepCopy()
	}
	for k := range s.set.Spec.VolumeClaimTemplates {
		s.set.Spec.VolumeClaimTemplates[k].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(templates)
	}
	return s
}

func TestClaimsGrowWithTheirTemplate(t *testing.T) {
	for name, c := range map[string]struct {
		pods, to string
		set      []func(*Set)
		change   func(*fixture)
		want     string
	}{
		"all of living pods":           {"0 1 2", "2Gi", is(grows), nil, "update data-web-0 update data-web-1 update data-web-2"},
		"whatever their health":        {"0! 1? 2", "2Gi", is(grows), nil, "update data-web-0 update data-web-1 update data-web-2"},
		"not where nobody asks":        {"0 1 2", "2Gi", nil, nil, ""},
		"not to the same size":         {"0 1 2", "1024Mi", is(grows), nil, ""},
		"never to a smaller one":       {"0 1 2", "1Mi", is(grows), nil, ""},
		"not of a pod that goes":       {"0 1 2~", "2Gi", is(grows), nil, "update data-web-0 update data-web-1"},
		"not outside the range":        {"0 1 2 3~", "2Gi", is(grows), nil, "update data-web-0 update data-web-1 update data-web-2"},
		"not before there is a volume": {"0 1 2", "2Gi", is(grows), func(s *fixture) { s.claims["data-web-1"].Status.Phase = corev1.ClaimPending }, "update data-web-0 update data-web-2"},
		"not what is larger by itself": {"0 1 2", "2Gi", is(grows), func(s *fixture) {
			s.claims["data-web-1"].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		}, "update data-web-0 update data-web-2"},
		"not of a set that is deleted": {"0 1 2", "2Gi", is(grows, deleting), nil, ""},
		"a revision has nothing of it": {"0 1 2", "2Gi", is(grows, onDelete), nil, "update data-web-0 update data-web-1 update data-web-2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, c.pods, append([]func(*Set){disk("data")}, c.set...)...).bound(c.to)
			if c.change != nil {
				c.change(s)
			}
			s.expect(c.want)
			if n := len(s.revisions); n != 1 {
				t.Errorf("%d revisions", n)
			}
		})
	}
}

// A refusal delays neither the update nor the other claims, and there is one request for each class in a
// pass.
func TestAClaimThatMayNotGrow(t *testing.T) {
	s := play(t, "0o 1o 2o", conditioned, grows, disk("data"), disk("log")).bound("2Gi")
	fast := "fast"
	for name, c := range s.claims {
		if strings.HasPrefix(name, "log") {
			c.Spec.StorageClassName = &fast
		}
	}
	s.fails["update data-web-0"] = apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data-web-0", errors.New("only dynamically provisioned pvc can be resized"))
	if got, want := s.sync(), "-2 update data-web-0 update log-web-0 update log-web-1 update log-web-2"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	const want = `claim data-web-0 requests 1Gi and needs 2Gi: persistentvolumeclaims "data-web-0" is forbidden: only dynamically provisioned pvc can be resized`
	if got := s.condition(ClaimsOutdated); got != "True FormerSize: "+want+", and 5 more" {
		t.Errorf("%q", got)
	}
	if got := s.condition(Stalled); s.err == nil || !strings.Contains(got, want) {
		t.Errorf("stalled %q, error %v", got, s.err)
	}
}

// The condition stays until the storage system is done, and describes its progress.
func TestClaimsAreOutdatedUntilTheyHaveGrown(t *testing.T) {
	s := play(t, "0", replicas(1), conditioned, grows, disk("data")).bound("2Gi")
	s.expect("update data-web-0")
	if got := s.condition(ClaimsOutdated); got != "True FormerSize: claim data-web-0 has 1Gi of 2Gi: its storage request was just raised" {
		t.Errorf("%q", got)
	}
	s.expect("")
	if got := s.condition(ClaimsOutdated); got != "True FormerSize: claim data-web-0 has 1Gi of 2Gi: its storage class has not grown it yet" {
		t.Errorf("%q", got)
	}
	status := &s.claims["data-web-0"].Status
	status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, Message: "waiting for a pod to start"}}
	s.expect("")
	if got := s.condition(ClaimsOutdated); got != "True FormerSize: claim data-web-0 has 1Gi of 2Gi: FileSystemResizePending: waiting for a pod to start" {
		t.Errorf("%q", got)
	}
	status = &s.claims["data-web-0"].Status
	status.Capacity, status.Conditions = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}, nil
	s.expect("")
	if got := s.condition(ClaimsOutdated); got != "" || s.condition(Stalled) != "" {
		t.Errorf("%q, stalled %q", got, s.condition(Stalled))
	}
}
