package volumes

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A policy that lets a new volume object in may change it, so that its claim does not bind or its disk goes with it.
func TestAVolumeThatAdmissionChangesIsFoundBeforeTheFlight(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   []string
	}{
		"nothing":         {func(*corev1.PersistentVolume) {}, nil},
		"a label":         {func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"team": "a"} }, nil},
		"the class":       {func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "platform" }, []string{"FAIL...volume pv-0 on the destination (west)...spec.storageClassName from \"\" to \"platform\""}},
		"what becomes":    {func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Delete" }, []string{"FAIL...spec.persistentVolumeReclaimPolicy...to \"Delete\""}},
		"how it is used":  {func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = nil }, []string{"FAIL...spec.accessModes"}},
		"whose it is":     {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, []string{"FAIL...spec.claimRef from \"mall/data-web-0\" to \"\""}},
		"which disk":      {func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "other" }, []string{"FAIL...spec.csi"}},
		"how it is there": {func(pv *corev1.PersistentVolume) { block := corev1.PersistentVolumeBlock; pv.Spec.VolumeMode = &block }, []string{"FAIL...spec.volumeMode"}},
		"its size":        {func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = nil }, []string{"FAIL...spec.capacity.storage from \"1Gi\" to \"0\""}},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{"{spec: {csi: {driver: disk.example.com, volumeHandle: vol-0}, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}}"}}.Inspected(t)
			watching, _ := i.On[plans.Destination].(client.WithWatch)
			i.On[plans.Destination] = interceptor.NewClient(watching, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if pv, is := o.(*corev1.PersistentVolume); is && len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
					c.change(pv)
				}
				return nil
			}})
			found, err := Accepted(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}
