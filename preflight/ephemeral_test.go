package preflight

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/sets"
)

const (
	scratch       = "{containers: [{name: web}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, resources: {requests: {storage: 5Gi}}}}}}]}"
	scratchOfNone = "{containers: [{name: web}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 5Gi}}}}}}]}"
	inline        = "{containers: [{name: web}], volumes: [{name: keys, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}}}]}"
)

func classNamed(name string, notes map[string]string) client.Object {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: notes}}
}

func TestClassesOfEphemeralVolumesAreMappedAndMustBeThere(t *testing.T) {
	renamed := plans.Storage{Classes: map[string]string{"fast": "fast-west"}}
	i := estate{spec: scratch, storage: renamed, volumes: []string{"spec: {nfs: {server: files, path: /a}}"}}.inspected(t)
	twin, err := sets.Twin(i.now.Set, i.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if got := *twin.Spec.Template.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName; got != "fast-west" {
		t.Errorf("the destination's pods ask for class %s", got)
	}
	if got := *i.now.Set.Spec.Template.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName; got != "fast" {
		t.Errorf("the source's own set was changed: class %s", got)
	}
	theirs := map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for name, c := range map[string]struct {
		estate
		want []string
	}{
		"of the same name":           {estate{spec: scratch, there: []client.Object{classNamed("fast", nil)}}, nil},
		"of another name":            {estate{spec: scratch, storage: renamed, there: []client.Object{classNamed("fast-west", nil)}}, nil},
		"not there":                  {estate{spec: scratch, here: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass fast: it does not exist on the destination"}},
		"not there under its name":   {estate{spec: scratch, storage: renamed, there: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass fast-west: it does not exist"}},
		"the default":                {estate{spec: scratchOfNone, there: []client.Object{classNamed("any", theirs)}}, nil},
		"the default of nobody":      {estate{spec: scratchOfNone, there: []client.Object{classNamed("any", nil)}}, []string{"FAIL ...ephemeral volume scratch: it names no StorageClass, and the destination has no default one"}},
		"the default nobody may see": {estate{spec: scratchOfNone, forbids: "*v1.StorageClassList"}, []string{"WARN ...you may not look at storageclasses"}},
	} {
		t.Run(name, func(t *testing.T) { c.finds(t, classesThere, c.want...) })
	}
}

func TestDriversOfInlineVolumesMustBeThere(t *testing.T) {
	vault := custom(t, "{apiVersion: secrets-store.csi.x-k8s.io/v1, kind: SecretProviderClass, metadata: {namespace: mall, name: vault}}")
	estate{spec: inline, there: []client.Object{installedDriver("secrets-store.csi.k8s.io"), vault}}.finds(t, classesThere)
	estate{spec: inline}.finds(t, classesThere,
		"FAIL ...CSIDriver secrets-store.csi.k8s.io: it does not exist on the destination", "FAIL ...SecretProviderClass vault: it does not exist on the destination")
}

func TestTheClaimsOfEphemeralVolumesCountForTheQuota(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "q"}}
	quota.Spec.Hard = corev1.ResourceList{"requests.storage": resource.MustParse("9Gi"), "fast-west.storageclass.storage.k8s.io/requests.storage": resource.MustParse("10Gi")}
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	i := estate{spec: scratch, volumes: []string{nfs, nfs}, storage: plans.Storage{Classes: map[string]string{"fast": "fast-west"}}, there: []client.Object{quota}}.inspected(t)
	i.notes.rules.known = map[place]listing{{plans.Destination, "mall"}: {complete: true}} // no pod may be tried
	found, err := quotaSuffices(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	expectFindings(t, found, "FAIL ...requests.storage: 9Gi of 9Gi are left, and the 2 ordinals that are to come need 10Gi")
}

func TestAClaimThatAnEphemeralVolumeNeedsTheNameOfIsInTheWay(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-1-scratch"}}
	far := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-7-scratch"}}
	estate{spec: scratch, volumes: []string{nfs, nfs}, there: []client.Object{other, far}}.finds(t, destinationFree, "FAIL ...claim mall/web-1-scratch: it exists on the destination")
}
