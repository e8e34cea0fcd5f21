package volumes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

func TestAFileServerThatIsAServiceOfTheSourceIsRefused(t *testing.T) {
	nfs := func(server string) string { return fmt.Sprintf("spec: {nfs: {server: %q, path: /a}}", server) }
	csi := func(driver, key, value string) string {
		return fmt.Sprintf("spec: {csi: {driver: %s, volumeHandle: a, volumeAttributes: {%s: %q}}}", driver, key, value)
	}
	services := []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "files"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7", "fd00::7"}}},
	}
	drivers := []client.Object{checktest.InstalledDriver("nfs.csi.k8s.io"), checktest.InstalledDriver("smb.csi.k8s.io")}
	for volume, want := range map[string][]string{
		nfs("files.storage.svc.cluster.local"):                                 {"FAIL ...volume pv-0 of data-web-0...files.storage.svc.cluster.local is a Service of its own cluster"},
		nfs("Files.storage.SVC"):                                               {"FAIL ...files.storage.svc is a Service"},
		nfs("files.storage.svc.corp.example."):                                 {"FAIL ...files.storage.svc.corp.example is a Service"},
		nfs("a-b-c-d.storage.pod.cluster.local"):                               {"FAIL ...is a Service of its own cluster"},
		csi("nfs.csi.k8s.io", "server", "files.storage.svc"):                   {"FAIL ...files.storage.svc is a Service"},
		csi("smb.csi.k8s.io", "source", "//files.storage.svc.cluster.local/a"): {"FAIL ...files.storage.svc.cluster.local is a Service"},
		csi("smb.csi.k8s.io", "source", `\\files.storage.svc\a`):               {"FAIL ...files.storage.svc is a Service"},
		nfs("10.96.0.7"):   {"FAIL ...10.96.0.7 is the address of Service storage/files of the source"},
		nfs("fd00:0:0::7"): {"FAIL ...is the address of Service storage/files of the source"},
		csi("smb.csi.k8s.io", "source", "//10.96.0.7/a"): {"FAIL ...10.96.0.7 is the address of Service storage/files"},
		nfs("files.storage"):                             {"FAIL ...files.storage is Service storage/files of the source"},
		nfs("files"):                                     {"WARN ...files may be Service storage/files of the source"},
		nfs("10.0.0.7"):                                  nil,
		nfs("files.example.com"):                         nil,
		nfs("svc.example.com"):                           nil,
		nfs("a.b.svc.clusterset.local"):                  nil,
		csi("nfs.csi.k8s.io", "server", ""):              nil,
	} {
		t.Run(volume, func(t *testing.T) {
			checktest.Estate{Volumes: []string{volume}, Here: services, There: drivers}.Finds(t, VolumeUsable, want...)
		})
	}
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"of a volume that all pods share": {
			checktest.Estate{Volumes: []string{nfs("files.example.com")}, Shared: nfs("10.96.0.7"), Spec: mountsMedia, Here: services},
			[]string{"FAIL ...volume pv-media of media...10.96.0.7 is the address of Service"},
		},
		"of two volumes, said once":     {checktest.Estate{Volumes: []string{nfs("10.96.0.7"), "spec: {nfs: {server: 10.96.0.7, path: /b}}"}, Here: services}, []string{"FAIL ...is the address of"}},
		"with Services nobody may list": {checktest.Estate{Volumes: []string{nfs("10.96.0.7")}, Forbids: "*v1.ServiceList"}, []string{"WARN ...you may not list the Services...kubectl --context my-east get services -A"}},
		"in one cluster":                {checktest.Estate{One: true, Volumes: []string{nfs("files.storage.svc")}}, nil},
	} {
		t.Run(name, func(t *testing.T) { c.Finds(t, VolumeUsable, c.want...) })
	}
}

// The volumes of a wave are checked again, by the part of the check that needs no list of Services.
func TestAFileServerOfTheSourceIsRefusedBeforeEveryOrdinal(t *testing.T) {
	i := checktest.Estate{Volumes: []string{"spec: {nfs: {server: files.storage.svc, path: /a}}"}}.Inspected(t)
	i.Midway = true
	found, err := VolumeUsable(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...is a Service of its own cluster")
}
