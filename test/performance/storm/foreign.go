package main

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreign is the driver, and the class, of the volumes that belong to nobody here.
const foreign = "foreign.example.com"

// maxWriters is how many objects are created at once.
const maxWriters = 16

// populate gives both clusters what clusters have beside the sets that are moved: volumes, each attached to a node.
func (s *storm) populate(ctx context.Context) error {
	if s.foreign == 0 {
		return nil
	}
	s.say("creating %d volumes and attachments of others in each cluster", s.foreign)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxWriters)
	for k := range s.foreign {
		for name, at := range map[string]client.Client{"east": s.east, "west": s.west} {
			g.Go(func() error {
				volume := foreignVolume(k)
				if err := at.Create(ctx, volume); err != nil {
					return err
				}
				return at.Create(ctx, attachment(volume.Name, fmt.Sprintf("%s-node-%d", name, k%(s.nodes+3))))
			})
		}
	}
	return g.Wait()
}

func foreignVolume(k int) *corev1.PersistentVolume {
	name := foreignName(k)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: foreign, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: foreign, VolumeHandle: name, VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": foreign}}},
		},
	}
}

func foreignName(k int) string { return fmt.Sprintf("foreign-%05d", k) }

func attachment(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: foreign, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
}

// stir changes volumes that belong to nobody here, so many times in all, in both clusters.
func (s *storm) stir(ctx context.Context, times int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxWriters)
	for k := range times {
		at := []client.Client{s.east, s.west}[k%2]
		g.Go(func() error {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{foreign + "/stirred": fmt.Sprint(k)}}})
			if err != nil {
				return err
			}
			return at.Patch(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: foreignName(k / 2 % s.foreign)}}, client.RawPatch(types.MergePatchType, patch))
		})
	}
	return g.Wait()
}
