// Package models_test holds the controllers of the simulation against those of a real control plane: it plays the same
// scripts on both, and compares what there is after every step.
package models_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// plane is the control plane that all scripts share, and here is a client of it.
var (
	plane *cluster.Cluster
	here  client.WithWatch
)

func TestMain(m *testing.M) {
	fixture.Tests("models", 16, func(ctx context.Context, _ string) (int, error) { return withCluster(ctx, m) })
}

func withCluster(ctx context.Context, m *testing.M) (code int, err error) {
	if plane, err = cluster.Start(ctx, "models", cluster.Options{BinderPeriod: time.Second}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop(ctx)) }()
	if err := cluster.InstallStorage(ctx, plane.Config()); err != nil {
		return 1, err
	}
	if here, err = client.NewWithWatch(plane.Config(), client.Options{Scheme: clusters.Scheme()}); err != nil {
		return 1, err
	}
	attaching, cancel := context.WithCancel(ctx)
	var attacher sync.WaitGroup
	attacher.Go(func() { attach(attaching) })
	defer func() { cancel(); attacher.Wait() }()
	return m.Run(), nil
}

// attach is the driver's attacher: it attaches whatever it is asked to.
func attach(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := here.Watch(ctx, &storagev1.VolumeAttachmentList{})
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if a, ok := e.Object.(*storagev1.VolumeAttachment); ok && !a.Status.Attached && a.DeletionTimestamp == nil {
				a.Status.Attached = true
				_ = here.Status().Update(ctx, a) // it may be gone
			}
		}
	}
}

// running is a pod that mounts claims.
func running(namespace, name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	pod.Namespace, pod.Name = namespace, name
	for _, c := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return pod
}
