package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
)

const (
	scratch       = "{containers: [{name: web}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, resources: {requests: {storage: 5Gi}}}}}}]}"
	scratchOfNone = "{containers: [{name: web}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 5Gi}}}}}}]}"
	inline        = "{containers: [{name: web}], volumes: [{name: keys, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}}}]}"
)

func classNamed(name string, notes map[string]string) client.Object {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: notes}}
}

func TestClassesOfEphemeralVolumesAreMapped(t *testing.T) {
	renamed := plans.Storage{Classes: map[string]string{"fast": "fast-west"}}
	i := checktest.Estate{Spec: scratch, Storage: renamed, Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}}.Inspected(t)
	twin, err := sets.DestinationSet(i.Now.Set, i.Plan)
	if err != nil {
		t.Fatal(err)
	}
	if got := *twin.Spec.Template.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName; got != "fast-west" {
		t.Errorf("the destination's pods ask for class %s", got)
	}
	if got := *i.Now.Set.Spec.Template.Spec.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName; got != "fast" {
		t.Errorf("the source's own set was changed: class %s", got)
	}
	theirs := map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"of the same name":           {checktest.Estate{Spec: scratch, There: []client.Object{classNamed("fast", nil)}}, nil},
		"of another name":            {checktest.Estate{Spec: scratch, Storage: renamed, There: []client.Object{classNamed("fast-west", nil)}}, nil},
		"not there":                  {checktest.Estate{Spec: scratch, Here: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass fast: it does not exist on the destination"}},
		"not there under its name":   {checktest.Estate{Spec: scratch, Storage: renamed, There: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass fast-west: it does not exist"}},
		"the default":                {checktest.Estate{Spec: scratchOfNone, There: []client.Object{classNamed("any", theirs)}}, nil},
		"the default of nobody":      {checktest.Estate{Spec: scratchOfNone, There: []client.Object{classNamed("any", nil)}}, []string{"FAIL ...ephemeral volume scratch: it names no StorageClass, and the destination has no default one"}},
		"the default nobody may see": {checktest.Estate{Spec: scratchOfNone, Forbids: "*v1.StorageClassList"}, []string{"WARN ...you may not look at storageclasses"}},
	} {
		t.Run(name, func(t *testing.T) { c.Finds(t, Classes, c.want...) })
	}
}

// The claim of an ordinal that starts without data is made by the destination's controller from the template of its set.
// An API server accepts a claim of a class that does not exist, and the claim then stays Pending.
func TestClassesOfClaimsThatStartEmptyAreOnTheDestination(t *testing.T) {
	const fast, none, plain = "{storageClassName: fast}", "{accessModes: [ReadWriteOnce]}", "{containers: [{name: web}]}"
	renamed := plans.Storage{Classes: map[string]string{"fast": "fast-west"}}
	patched := "spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: slow}}]}"
	ga, beta := map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}, map[string]string{"storageclass.beta.kubernetes.io/is-default-class": "true"}
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"there":                   {checktest.Estate{Template: fast, There: []client.Object{classNamed("fast", nil)}}, nil},
		"there under its name":    {checktest.Estate{Template: fast, Storage: renamed, There: []client.Object{classNamed("fast-west", nil)}}, nil},
		"on the source only":      {checktest.Estate{Template: fast, Here: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass fast: it does not exist on the destination...claim template data starts empty with it...--storage-class or --patch"}},
		"not there under it":      {checktest.Estate{Template: fast, Storage: renamed, There: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass fast-west: it does not exist...--storage-class or --patch"}},
		"another by patch":        {checktest.Estate{Template: fast, Patch: patched, There: []client.Object{classNamed("fast", nil)}}, []string{"FAIL ...StorageClass slow"}},
		"by hand, by that name":   {checktest.Estate{Template: fast}, []string{"WARN ...StorageClass fast: no side has it...made by hand...claim template data starts empty"}},
		"by hand, in one cluster": {checktest.Estate{Template: fast, One: true}, []string{"WARN ...StorageClass fast: no side has it"}},
		"renamed, and not there":  {checktest.Estate{Template: fast, Storage: renamed}, []string{"FAIL ...StorageClass fast-west: it does not exist on the destination"}},
		"as an ephemeral volume":  {checktest.Estate{Template: fast, Spec: scratch}, []string{"FAIL ...StorageClass fast", "WARN ...StorageClass fast...claim template data"}},
		"nobody may see it":       {checktest.Estate{Template: fast, Forbids: "*v1.StorageClass"}, []string{"WARN ...StorageClass fast on the destination...you may not look at storageclasses"}},
		"made by hand":            {checktest.Estate{Template: "{storageClassName: ''}"}, nil},
		"the default":             {checktest.Estate{Template: none, There: []client.Object{classNamed("any", ga)}}, nil},
		"the default of old":      {checktest.Estate{Template: none, There: []client.Object{classNamed("any", beta)}}, nil},
		"the default of nobody":   {checktest.Estate{Template: none, There: []client.Object{classNamed("any", nil)}}, []string{"FAIL ...claim template data: it names no StorageClass, and the destination has no default one"}},
		"the default nobody sees": {checktest.Estate{Template: none, Forbids: "*v1.StorageClassList"}, []string{"WARN ...the default StorageClass...you may not look at storageclasses"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Volumes, c.Empty = []string{"spec: {nfs: {server: files, path: /a}}"}, true
			if c.Spec == "" {
				c.Spec = plain
			}
			c.Finds(t, Classes, c.want...)
		})
	}
	t.Run("a claim that moves", func(t *testing.T) { // it keeps its volume, and the check volume-usable looks for the class
		checktest.Estate{Spec: plain, Template: fast, Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}}.Finds(t, Classes)
	})
}

func TestDriversOfInlineVolumesMustBeThere(t *testing.T) {
	vault := checktest.CustomObject(t, "{apiVersion: secrets-store.csi.x-k8s.io/v1, kind: SecretProviderClass, metadata: {namespace: mall, name: vault}}")
	checktest.Estate{Spec: inline, There: []client.Object{checktest.InstalledDriver("secrets-store.csi.k8s.io"), vault}}.Finds(t, Classes)
	checktest.Estate{Spec: inline}.Finds(t, Classes,
		"FAIL ...CSIDriver secrets-store.csi.k8s.io: it does not exist on the destination", "FAIL ...SecretProviderClass vault: it does not exist on the destination")
}

func TestTheClaimsOfEphemeralVolumesCountForTheQuota(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "q"}}
	quota.Spec.Hard = corev1.ResourceList{"requests.storage": resource.MustParse("9Gi"), "fast-west.storageclass.storage.k8s.io/requests.storage": resource.MustParse("10Gi")}
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	i := checktest.Estate{Spec: scratch, Volumes: []string{nfs, nfs}, Storage: plans.Storage{Classes: map[string]string{"fast": "fast-west"}}, There: []client.Object{quota}}.Inspected(t)
	if _, err := check.Once(i, access.Place{Side: plans.Destination, Namespace: "mall"}, func() (access.Listing, error) { return access.Listing{Complete: true}, nil }); err != nil { // no pod may be tried
		t.Fatal(err)
	}
	found, err := Quota(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...requests.storage: 9Gi of 9Gi are left, and the 2 ordinals that are to come need 10Gi")
}
