package volumes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/plans"
)

func azureDisk(group string) string {
	return "spec: {csi: {driver: disk.csi.azure.com, volumeHandle: /subscriptions/s/resourceGroups/" + group + "/providers/Microsoft.Compute/disks/pvc-1}}"
}

func provided(name, id string) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
}

func TestDisksThatGoWithTheOldClusterAreRefused(t *testing.T) {
	const scaleSet = "/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/0"
	old := provided("n1", "azure:///subscriptions/s/resourceGroups/mc_old_east"+scaleSet)
	young := provided("n1", "azure:///subscriptions/s/resourceGroups/mc_new_west"+scaleSet)
	ebs := "spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"in the group of the old cluster's nodes": {
			checktest.Estate{Volumes: []string{azureDisk("MC_old_east"), azureDisk("MC_old_east")}, Here: []client.Object{old}, There: []client.Object{young}},
			[]string{"FAIL ...volumes pv-0, pv-1...resource group mc_old_east...whatever the reclaim policy...another handle...az resource move --destination-group GROUP --ids /subscriptions/s/resourceGroups/MC_old_east/"},
		},
		"a share in that group": {
			checktest.Estate{Volumes: []string{"spec: {csi: {driver: file.csi.azure.com, volumeHandle: 'mc_old_east#account#share#'}}"}, Here: []client.Object{old}},
			[]string{"FAIL ...resource group mc_old_east"},
		},
		"in another group": {
			checktest.Estate{Volumes: []string{azureDisk("disks")}, Here: []client.Object{old}, There: []client.Object{young}},
			[]string{"WARN ...driver disk.csi.azure.com...resource group in which it lies...az aks show"},
		},
		"in a group that both clusters are in": {
			checktest.Estate{Volumes: []string{azureDisk("MC_old_east")}, Here: []client.Object{old}, There: []client.Object{old}},
			[]string{"WARN ...driver disk.csi.azure.com"},
		},
		"in a group of nobody knows whom": {
			checktest.Estate{Volumes: []string{azureDisk("MC_old_east")}, Here: []client.Object{old}, Forbids: "*v1.NodeList"},
			[]string{"WARN ...driver disk.csi.azure.com"},
		},
		"with tags": {
			checktest.Estate{Volumes: []string{ebs, ebs}},
			[]string{"WARN ...volumes pv-0, pv-1...driver ebs.csi.aws.com...kubernetes.io/cluster/NAME...aws ec2 describe-tags"},
		},
		"of two drivers": {
			checktest.Estate{Volumes: []string{ebs, "spec: {csi: {driver: csi.vsphere.vmware.com, volumeHandle: 6a1a1fa9-2b9d-4d16-9ab1-3fd1a7f6c9a1}}"}},
			[]string{"WARN ...csi.vsphere.vmware.com...de-registers", "WARN ...ebs.csi.aws.com"},
		},
		"of a backend that knows no clusters": {checktest.Estate{Volumes: []string{"spec: {nfs: {server: files, path: /a}}", "spec: {csi: {driver: rook.rbd.csi.ceph.com, volumeHandle: a}}"}}, nil},
		"in one cluster":                      {checktest.Estate{One: true, Volumes: []string{azureDisk("MC_old_east")}, Here: []client.Object{old}}, nil},
		"that all pods share": {
			checktest.Estate{Volumes: []string{"spec: {nfs: {server: files, path: /a}}"}, Shared: azureDisk("MC_old_east"), Here: []client.Object{old}, Spec: mountsMedia},
			[]string{"FAIL ...volumes pv-media"},
		},
	} {
		t.Run(name, func(t *testing.T) { c.Finds(t, DiskOwner, c.want...) })
	}
}

const mountsMedia = "{containers: [{name: web}], volumes: [{name: media, persistentVolumeClaim: {claimName: media}}]}"

// The volumes that the move has brought over are checked again at its end.
func TestTheEndOfAPlanSaysWhatTheOldClusterStillOwns(t *testing.T) {
	e := checktest.Estate{Volumes: []string{azureDisk("MC_old_east")}, Here: []client.Object{provided("n1", "azure:///subscriptions/s/resourceGroups/mc_old_east/providers/x")}}
	i := e.Inspected(t)
	found, err := Farewell(t.Context(), i.Plan, i.On, i.Caller)
	if err != nil || len(found) > 0 {
		t.Errorf("before anything has arrived: %v, %v", found, err)
	}
	for _, o := range e.Bound(t, "data-web-0", "pv-0", azureDisk("MC_old_east")) {
		if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
			c.Namespace = "mall"
		}
		if err := i.On[plans.Destination].Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	// Another claim names the same volume, and comes later in the list.
	other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "zz"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-0"}}
	if err := i.On[plans.Destination].Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if found, err = Farewell(t.Context(), i.Plan, i.On, i.Caller); err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "WARN disk-owner: volumes pv-0...resource group mc_old_east")
}

func TestWhatBothClustersMustShareIsNamedForEveryDriver(t *testing.T) {
	i := checktest.Estate{Volumes: []string{
		"spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}", "spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-2}}",
		"spec: {nfs: {server: files, path: /a}}", "spec: {csi: {driver: disk.example.com, volumeHandle: a}}",
	}}.Inspected(t)
	got, err := Backends(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	var drivers []string
	for _, b := range got {
		word, _, _ := strings.Cut(b.Share, " and")
		drivers = append(drivers, b.Driver+": "+word)
	}
	want := []string{"disk.example.com: what its documentation says: it is not known here", "ebs.csi.aws.com: the AWS account", "nfs: the file server"}
	if diff := cmp.Diff(want, drivers); diff != "" {
		t.Error(diff)
	}
}

func TestDisksOfVSphereAreNotKnownToBeTheSameElsewhere(t *testing.T) {
	vanilla := "spec: {csi: {driver: csi.vsphere.vmware.com, volumeHandle: 6a1a1fa9-2b9d-4d16-9ab1-3fd1a7f6c9a1}}"
	inGuest := "spec: {csi: {driver: csi.vsphere.vmware.com, volumeHandle: 4e129685-7816-4812-bfd9-a2046620d8ac-c8b6b270-6302-47b4-b345-68a36ea5b0f6}}"
	driver := checktest.InstalledDriver("csi.vsphere.vmware.com")
	checktest.Estate{Volumes: []string{vanilla}, There: []client.Object{driver}}.Finds(t, CsiDriver, "FAIL ...CSI driver csi.vsphere.vmware.com...not known")
	checktest.Estate{Volumes: []string{inGuest}, There: []client.Object{driver}}.Finds(t, CsiDriver)
	checktest.Estate{Volumes: []string{inGuest}, There: []client.Object{driver}}.Finds(t, VolumeUsable, "FAIL ...keeps its volumes in objects or on nodes of its own cluster")
}

func TestTheEndNamesTheLabelForArgoCD(t *testing.T) {
	for name, c := range map[string]struct {
		label, app, server string
		one                bool
		want               []string
	}{
		"an Application of that name":              {"shop", "shop", "", true, []string{"WARN argocd: ...app.kubernetes.io/instance=shop...put them into Git for Application shop"}},
		"no such Application":                      {"shop", "other", "", true, nil},
		"no label":                                 {"", "shop", "", true, nil},
		"an Application that serves the other one": {"shop", "shop", "https://east.example.com", false, nil},
		"one that serves the destination's":        {"shop", "shop", "https://kubernetes.default.svc", false, []string{"WARN argocd: ...put them into Git for Application shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{One: c.one}.Inspected(t)
			kind := owners.Application().WithVersion("v1alpha1")
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
			mapper.Add(kind, meta.RESTScopeNamespace)
			mapper.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), meta.RESTScopeNamespace)
			app := &unstructured.Unstructured{}
			app.SetGroupVersionKind(kind)
			app.SetNamespace("argocd")
			app.SetName(c.app)
			_ = unstructured.SetNestedField(app.Object, c.server, "spec", "destination", "server")
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web", Labels: map[string]string{"app.kubernetes.io/instance": c.label}}}
			i.On[plans.Destination] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithRESTMapper(mapper).WithObjects(app, set).WithIndex(app, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
			found, err := Farewell(t.Context(), i.Plan, i.On, i.Caller)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}
