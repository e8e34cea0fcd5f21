package move_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/storage"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// state is everything about a set that a move must keep or restore.
type state struct {
	Set     appsv1.StatefulSetSpec
	Budgets map[string]policyv1.PodDisruptionBudgetSpec
	// Volumes are keyed by claim.
	Volumes map[string]disk
}

// disk is the disk behind a claim, and the properties that its owner sees.
type disk struct {
	Handle string
	Policy corev1.PersistentVolumeReclaimPolicy
	Labels map[string]string // of the claim
}

// state reads the state of a side.
func (s *migration) state(on *end) state {
	s.t.Helper()
	out := state{Budgets: map[string]policyv1.PodDisruptionBudgetSpec{}, Volumes: map[string]disk{}}
	var set appsv1.StatefulSet
	s.read(on, &set)
	out.Set = set.Spec
	var budgets policyv1.PodDisruptionBudgetList
	var claims corev1.PersistentVolumeClaimList
	s.list(on, &budgets)
	s.list(on, &claims)
	for _, b := range budgets.Items {
		out.Budgets[b.Name] = b.Spec
	}
	for _, c := range claims.Items {
		var pv corev1.PersistentVolume
		if err := on.Get(s.t.Context(), client.ObjectKey{Name: c.Spec.VolumeName}, &pv); err != nil {
			s.t.Fatalf("the volume of claim %s: %v", c.Name, err)
		}
		if c.Status.Phase != corev1.ClaimBound || pv.Status.Phase != corev1.VolumeBound || pv.Spec.ClaimRef.UID != c.UID {
			s.t.Errorf("claim %s (%s) and volume %s (%s) do not name each other", c.Name, c.Status.Phase, pv.Name, pv.Status.Phase)
		}
		out.Volumes[c.Name] = disk{diskOf(&pv), pv.Spec.PersistentVolumeReclaimPolicy, c.Labels}
	}
	return out
}

// diskOf returns the name that the backend has for the disk or, for kinds other than CSI, the name that the
// program uses.
func diskOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI != nil {
		return pv.Spec.CSI.VolumeHandle
	}
	handle, _ := storage.Handle(pv)
	return handle
}

func (s *migration) list(on *end, into client.ObjectList) {
	s.t.Helper()
	if err := on.List(s.t.Context(), into, client.InNamespace(on.namespace)); err != nil {
		s.t.Fatal(err)
	}
}

// handles returns the disks by claim.
func (st state) handles() map[string]string {
	out := map[string]string{}
	for claim, d := range st.Volumes {
		out[claim] = d.Handle
	}
	return out
}

// same compares two states, or parts of them.
func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// nothingLost checks that the backend has destroyed none of these disks.
func nothingLost(t *testing.T, of state) {
	t.Helper()
	destroyed, err := bed.Backend.Destroyed()
	if err != nil {
		t.Fatal(err)
	}
	for claim, handle := range of.handles() {
		if slices.Contains(destroyed, handle) {
			t.Errorf("the data of claim %s (disk %s) is destroyed", claim, handle)
		}
	}
}

// proper checks the witness's report on a whole move with a budget of d.
func proper(t *testing.T, w *witness.Witness, d int) *witness.Report {
	t.Helper()
	r := w.Stop()
	for _, v := range r.Violations {
		t.Errorf("witness: %s", v)
	}
	if r.MaxUnavailable > d {
		t.Errorf("witness: %d ordinals were unavailable at once, at most %d were allowed", r.MaxUnavailable, d)
	}
	if r.MaxAtRisk > d {
		t.Errorf("witness: ordinals that were down and evictions that the budgets allowed add up to %d, at most %d was promised", r.MaxAtRisk, d)
	}
	return r
}

// kinds lists every kind that a move may write.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.StatefulSetList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &policyv1.PodDisruptionBudgetList{},
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{},
		&coordinationv1.LeaseList{},
	}
}

// objects returns every object of both sides, by side, kind and name. It includes the volumes that name a
// claim of either side.
func (s *migration) objects() map[string]client.Object {
	s.t.Helper()
	out := map[string]client.Object{}
	for side, on := range map[string]*end{"source": s.source, "destination": s.destination} {
		for _, list := range kinds() {
			s.list(on, list)
			each(s.t, list, func(o client.Object) { out[side+" "+name(o)] = o })
		}
		var volumes corev1.PersistentVolumeList
		if err := on.List(s.t.Context(), &volumes); err != nil {
			s.t.Fatal(err)
		}
		for i := range volumes.Items {
			if r := volumes.Items[i].Spec.ClaimRef; r != nil && r.Namespace == on.namespace {
				out[side+" "+name(&volumes.Items[i])] = &volumes.Items[i]
			}
		}
	}
	return out
}

func each(t *testing.T, list client.ObjectList, do func(client.Object)) {
	t.Helper()
	err := meta.EachListItem(list, func(o runtime.Object) error {
		do(o.(client.Object)) //nolint:forcetypeassert // what a client.ObjectList holds
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func name(o client.Object) string {
	_, kind, _ := strings.Cut(fmt.Sprintf("%T", o), ".")
	return kind + "/" + o.GetName()
}

// versions returns the UIDs and resource versions of all objects. Equal results mean that nothing was written
// in between.
func (s *migration) versions() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for name, o := range s.objects() {
		out[name] = string(o.GetUID()) + " " + o.GetResourceVersion()
	}
	return out
}

// names returns the sorted names of all objects of a side.
func (s *migration) names(side string) []string {
	s.t.Helper()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.objects())) {
		if rest, ok := strings.CutPrefix(name, side+" "); ok {
			out = append(out, rest)
		}
	}
	return out
}

// gone reports whether an object does not exist.
func (s *migration) gone(on *end, o client.Object, name string) bool {
	s.t.Helper()
	err := on.Get(s.t.Context(), on.key(name), o)
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	return err != nil
}

// destroyed waits until the backend has destroyed a disk.
func (s *migration) destroyed(handle string) {
	s.t.Helper()
	s.eventually("disk "+handle+" is destroyed", func(context.Context) bool {
		all, err := bed.Backend.Destroyed()
		return err == nil && slices.Contains(all, handle)
	})
}
