package volumes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestASharedClaimNeedsModesForBothSides(t *testing.T) {
	const (
		written = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		read    = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media, readOnly: true}}]}"
		mounted = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m, readOnly: true}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		twice   = "{initContainers: [{name: i, volumeMounts: [{name: media, mountPath: /m}]}], containers: [{name: web, volumeMounts: [{name: media, mountPath: /m, readOnly: true}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		device  = "{containers: [{name: web, volumeDevices: [{name: media, devicePath: /dev/m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
		refused = "FAIL ...claim media, which the pod template names: it is [...and pods of both sides mount it at the same time"
	)
	for name, c := range map[string]struct {
		claim, volume, spec, patch string
		want                       []string
	}{
		"many writers":                     {"ReadWriteMany", "ReadWriteMany", written, "", nil},
		"one writer of a volume for all":   {"ReadWriteOnce", "ReadWriteOnce, ReadOnlyMany", written, "", []string{refused}},
		"one writer, read only":            {"ReadWriteOnce", "ReadWriteOnce", read, "", []string{refused}},
		"one writer or many readers":       {"ReadWriteOnce, ReadOnlyMany", "ReadWriteOnce, ReadOnlyMany", read, "", []string{refused}},
		"many readers who write":           {"ReadOnlyMany", "ReadOnlyMany", written, "", []string{refused}},
		"many readers":                     {"ReadOnlyMany", "ReadOnlyMany", read, "", nil},
		"many readers by their mounts":     {"ReadOnlyMany", "ReadOnlyMany", mounted, "", nil},
		"one of whom writes":               {"ReadOnlyMany", "ReadOnlyMany", twice, "", []string{refused}},
		"a device that is written":         {"ReadOnlyMany", "ReadOnlyMany", device, "", []string{refused}},
		"readers whom a patch lets write":  {"ReadOnlyMany", "ReadOnlyMany", read, "spec: {template: {spec: {volumes: [{name: media, persistentVolumeClaim: {claimName: media, readOnly: false}}]}}}", []string{refused}},
		"a volume for less than the claim": {"ReadWriteMany", "ReadWriteOnce", written, "", []string{"FAIL ...its volume is [ReadWriteOnce] and can be mounted by one node only"}},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.Estate{
				Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}, Claim: "accessModes: [" + c.claim + "]", Patch: c.patch,
				Shared: "spec: {accessModes: [" + c.volume + "], nfs: {server: files, path: /media}}", Spec: c.spec,
			}.Finds(t, SharedVolumes, c.want...)
		})
	}
}

// A pod that arrives waits for a claim that the user has made there and that somebody has deleted since.
func TestNoOrdinalLeavesForASideWithoutAClaimMadeByHand(t *testing.T) {
	const written = "{containers: [{name: web, volumeMounts: [{name: media, mountPath: /m}]}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"
	claim := func(namespace string, change ...func(*corev1.PersistentVolumeClaim)) client.Object {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "media"}}
		for _, change := range change {
			change(c)
		}
		return c
	}
	deleted := func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"kubernetes.io/pvc-protection"}
	}
	for name, c := range map[string]struct {
		here, there []client.Object
		from        plans.Side
		byPlan      bool
		want        []string
	}{
		"a move":                           {nil, []client.Object{claim("mall")}, plans.Source, false, nil},
		"a move, and it is gone":           {[]client.Object{claim("shop")}, nil, plans.Source, false, []string{"FAIL ...claim media of namespace mall on the destination, which the pod template names: it does not exist any more"}},
		"a move, and it goes":              {nil, []client.Object{claim("mall", deleted)}, plans.Source, false, []string{"FAIL ...it is being deleted by another writer"}},
		"a move, and the plan has made it": {nil, nil, plans.Source, true, nil},
		"an abort":                         {[]client.Object{claim("shop")}, nil, plans.Destination, false, nil},
		"an abort, and it is gone":         {nil, []client.Object{claim("mall")}, plans.Destination, false, []string{"FAIL ...claim media of namespace shop on the source"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Here: c.here, There: c.there, Spec: written}.Inspected(t)
			i.Midway, i.From, i.Plan.Shared = true, c.from, nil
			if c.byPlan {
				i.Plan.Shared = []plans.SharedVolume{{Claim: "media"}}
			}
			found, err := SharedVolumes(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}
