package volumes

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

func TestDisksOfOneNodeThatAreNeverAttachedAreWarnedOf(t *testing.T) {
	yes, no := true, false
	const once, many = "accessModes: [ReadWriteOnce]", "accessModes: [ReadWriteMany]"
	for name, c := range map[string]struct {
		modes  string
		attach *bool
		one    bool
		want   []string
	}{
		"never attached":              {once, &no, false, []string{"WARN ...for one node at a time, and driver disk.example.com never attaches them"}},
		"shared by nodes":             {many, &no, false, nil},
		"attached":                    {once, &yes, false, nil},
		"the default of Kubernetes":   {once, nil, false, nil},
		"all of it is in one cluster": {once, &no, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: c.attach}}
			volume := "spec: {" + c.modes + ", csi: {driver: disk.example.com, volumeHandle: a}}"
			checktest.Estate{Volumes: []string{volume}, One: c.one, Here: []client.Object{driver}}.Finds(t, NeverAttached, c.want...)
		})
	}
}
