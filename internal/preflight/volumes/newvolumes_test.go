package volumes

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/api/consent"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

const onADisk = "{spec: {csi: {driver: disk.example.com, volumeHandle: vol-0, nodePublishSecretRef: {namespace: rook, name: node}}}}"

// refusing makes policies of one side refuse every write of a plan to volumes, and records these writes in
// sent.
func refusing(t *testing.T, i check.Inspection, side plans.Side, sent *[]string) {
	t.Helper()
	var mu sync.Mutex
	policy := func(verb string, o client.Object, dryRun []string) error {
		mu.Lock()
		defer mu.Unlock()
		*sent = append(*sent, verb+" "+o.GetName())
		if len(dryRun) == 0 {
			t.Errorf("%s of %s is no dry run", verb, o.GetName())
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, o.GetName(), nil)
	}
	whole, ok := i.On[side].(client.WithWatch)
	if !ok {
		t.Fatalf("%T", i.On[side])
	}
	i.On[side] = interceptor.NewClient(whole, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return policy("create", o, (&client.CreateOptions{}).ApplyOptions(opts).DryRun)
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
			return policy("patch", o, (&client.PatchOptions{}).ApplyOptions(opts).DryRun)
		},
	})
}

// made is the destination's object of a volume that this plan protects.
func made(plan string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-0", Annotations: map[string]string{plans.StampAnnotation: plan + "/1/7"}}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-0"}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "mall", Name: "data-web-0", UID: "uid-of-data-web-0"}
	return pv
}

func TestVolumePoliciesAreFoundBeforeTheFlight(t *testing.T) {
	for name, c := range map[string]struct {
		estate       checktest.Estate
		refuses      plans.Side
		midway       bool
		orchestrated bool
		from         plans.Side
		want         []string
		sent         string
	}{
		"one that is made": {
			estate: checktest.Estate{Volumes: []string{onADisk}}, refuses: plans.Destination, sent: "create pv-0",
			want: []string{"FAIL ...volume pv-0 on the destination (west)...for claim mall/data-web-0...consent --cluster --plan FILE --side destination"},
		},
		"one that is there and not ours is looked at by others": {
			estate: checktest.Estate{Volumes: []string{onADisk}, There: []client.Object{made("other")}}, refuses: plans.Destination, midway: true,
		},
		"one that is protected is changed": {
			estate: checktest.Estate{Volumes: []string{onADisk}, There: []client.Object{made("web-abc")}}, refuses: plans.Destination, midway: true, sent: "patch pv-0",
			want: []string{"FAIL ...volume pv-0 on the destination (west)...policies.accounts"},
		},
		"during an abort too": {
			estate: checktest.Estate{There: []client.Object{made("web-abc"), &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "data-web-0", UID: "uid-of-data-web-0"},
				Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-0"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
			}}, Volumes: nil},
			refuses: plans.Source, midway: true, from: plans.Destination, sent: "create pv-0",
			want: []string{"FAIL ...volume pv-0 on the source (east)...for claim shop/data-web-0...--side source"},
		},
		"the first one is protected": {
			estate: checktest.Estate{Volumes: []string{onADisk, onADisk}}, refuses: plans.Source, sent: "patch pv-0",
			want: []string{"FAIL ...volume pv-0 on the source (east)...permission to protect it...policies.movers"},
		},
		"within one cluster too": {
			estate: checktest.Estate{Volumes: []string{onADisk}, One: true}, refuses: plans.Source, sent: "patch pv-0",
			want: []string{"FAIL ...volume pv-0 on the source...permission to protect it...policies.movers"},
		},
		"but not for an orchestrator, whose rights are others": {
			estate: checktest.Estate{Volumes: []string{onADisk}, One: true}, refuses: plans.Source, orchestrated: true,
		},
		"one that is protected by another plan is looked at by others": {
			estate: checktest.Estate{Volumes: []string{"{metadata: {annotations: {stsmigrate.dev/stamp: other/1/7}}, spec: {csi: {driver: disk.example.com, volumeHandle: vol-0}}}"}, One: true}, refuses: plans.Source,
		},
		"within one cluster nothing is made": {estate: checktest.Estate{Volumes: []string{onADisk}, One: true}, refuses: plans.Destination},
		"but the second object of what all share": {
			estate: checktest.Estate{Shared: "{spec: {nfs: {server: files, path: /a}}}", One: true, Spec: "{volumes: [{name: media, persistentVolumeClaim: {claimName: media}}], containers: [{name: web}]}"}, refuses: plans.Destination, sent: "create pv-media-mall",
			want: []string{"FAIL ...volume pv-media-mall on the destination...for claim mall/media"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.estate
			if c.from == plans.Destination { // the volumes are on the destination, and the set has claims all the same
				e.Volumes = []string{onADisk}
			}
			i := e.Inspected(t)
			if c.from == plans.Destination {
				for _, o := range []client.Object{&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-0"}}, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-0"}}} {
					if err := i.On[plans.Source].Delete(t.Context(), o); err != nil {
						t.Fatal(err)
					}
				}
				i.From = c.from
			}
			i.Midway = c.midway
			if c.orchestrated {
				i.Orchestrated = func() time.Time { return time.Time{} }
			}
			var sent []string
			refusing(t, i, c.refuses, &sent)
			found, err := Accepted(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
			if strings.Join(sent, ", ") != c.sent {
				t.Errorf("sent: %q, expected %q", sent, c.sent)
			}
		})
	}
}

// The volumes of the destination are not there before the first write: its policy is tried with some other one.
func TestThePolicyOfTheDestinationIsFoundBeforeTheFlight(t *testing.T) {
	other := func(change ...func(*corev1.PersistentVolume)) client.Object {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-other"}}
		for _, change := range change {
			change(pv)
		}
		return pv
	}
	held := func(pv *corev1.PersistentVolume) { plans.Stamp{Plan: "other", Epoch: 1, Seq: 7}.Put(pv) }
	for name, c := range map[string]struct {
		there []client.Object
		by    string
		want  []string
	}{
		"an orchestrator may carry out a draft":  {[]client.Object{other()}, access.ProtectedVolumesPolicy, []string{"WARN ...permission to change those that the plan protects there, if you carry the plan out yourself...policies.movers"}},
		"the user is none who carries plans out": {[]client.Object{other()}, access.ProtectedVolumesPolicy, []string{"FAIL ...volumes on the destination (west)...stsmigrate-protected-volumes...permission to change those that the plan protects there...policies.movers"}},
		"a draft that is handed over":            {[]client.Object{other()}, access.ProtectedVolumesPolicy, nil},
		"another policy is about that volume":    {[]client.Object{other()}, "keep-pv-other", nil},
		"that volume is of another plan":         {[]client.Object{other(held)}, access.ProtectedVolumesPolicy, nil},
		"there is no volume":                     {nil, access.ProtectedVolumesPolicy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{onADisk}, There: c.there}.Inspected(t)
			i.Draft = strings.Contains(name, "draft")
			if strings.Contains(name, "handed over") {
				i.Account = "system:serviceaccount:stsmigrate:orchestrator"
			}
			there, ok := i.On[plans.Destination].(client.WithWatch)
			if !ok {
				t.Fatalf("%T", i.On[plans.Destination])
			}
			i.On[plans.Destination] = interceptor.NewClient(there, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: "ValidatingAdmissionPolicy '" + c.by + "' denied request"}}
				},
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil },
			})
			found, err := Accepted(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

func TestAnOrchestratorIsToldWhatLimitsItInACluster(t *testing.T) {
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: access.NewVolumesPolicy}}
	older := binding.DeepCopy()
	older.Spec.ParamRef = &admissionv1.ParamRef{Namespace: "kube-system", Name: access.OldVolumesMap}
	agreed := func(spec string) *unstructured.Unstructured {
		v := consent.Volume{Name: "pv-0", Plan: "web-abc", Spec: runtime.RawExtension{Raw: []byte(spec)}}
		out, err := access.AgreeVolumes(&plans.Plan{ID: "web-abc"}, []consent.Volume{v}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const all = `{"claimRef":{"namespace":"mall","name":"data-web-0"},"csi":{"driver":"disk.example.com","volumeHandle":"vol-0","nodePublishSecretRef":{"namespace":"rook","name":"node"}}}`
	for name, c := range map[string]struct {
		there  []client.Object
		person bool
		one    bool
		want   []string
	}{
		"nothing does":                   {want: []string{"WARN ...ValidatingAdmissionPolicyBinding stsmigrate-new-volumes on the destination (west)...there is none...install --context my-west policies --apply"}},
		"the policy of an older release": {there: []client.Object{older}, want: []string{"WARN ...stsmigrate-new-volumes on the destination...reads ConfigMap kube-system/stsmigrate-volumes...install --context my-west policies --apply"}},
		"a person goes by own rights":    {person: true},
		"within one cluster":             {one: true},
		"the cluster agrees to nothing":  {there: []client.Object{binding}, want: []string{"FAIL ...VolumeConsent cluster on the destination...does not agree to volume pv-0...consent --cluster"}},
		"it agrees to another disk":      {there: []client.Object{binding, agreed(strings.Replace(all, "vol-0", "vol-1", 1))}, want: []string{`FAIL ...does not agree to volume pv-0...of pv-0 it lacks spec.csi.volumeHandle: "vol-0"`}},
		"to the Secret in another role":  {there: []client.Object{binding, agreed(strings.Replace(all, "nodePublish", "nodeStage", 1))}, want: []string{`FAIL ...it lacks spec.csi.nodePublishSecretRef.name: "node", spec.csi.nodePublishSecretRef.namespace: "rook", without spec.csi.nodeStageSecretRef.name: "node" and 1 more`}},
		"it agrees":                      {there: []client.Object{binding, agreed(all)}},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{onADisk}, There: c.there, One: c.one}.Inspected(t)
			if !c.person {
				i.Orchestrated = func() time.Time { return time.Time{} }
			}
			found, err := Accepted(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// A plan of many ordinals has many volumes that differ only in their disks. One of each kind is tried before the start.
func TestOneVolumeOfEachKindIsTried(t *testing.T) {
	const one = "{spec: {csi: {driver: disk.example.com, volumeHandle: vol-0, volumeAttributes: {name: a}}}}"
	const same = "{metadata: {annotations: {stsmigrate.dev/before: x}}, spec: {csi: {driver: disk.example.com, volumeHandle: vol-1, volumeAttributes: {name: b}}}}"
	const other = "{spec: {csi: {driver: file.example.com, volumeHandle: vol-2}}}"
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: access.NewVolumesPolicy}}
	for name, c := range map[string]struct {
		there  []client.Object
		midway bool
		sent   int
	}{
		"one of each kind":                   {sent: 2},
		"all, where a policy may name disks": {there: []client.Object{binding}, sent: 3},
		"all of a wave":                      {midway: true, sent: 3},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{one, same, other}, There: c.there}.Inspected(t)
			i.Midway = c.midway
			var sent []string
			refusing(t, i, plans.Destination, &sent)
			if _, err := Accepted(t.Context(), i); err != nil {
				t.Fatal(err)
			}
			if len(sent) != c.sent {
				t.Errorf("sent: %q, expected %d", sent, c.sent)
			}
		})
	}
}
