package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Changes by others in a namespace, or in a cluster, do not cause a new list each time. Changes of what was
// looked at, of a pod of the set and of an attachment of the wave's volumes are urgent.
func TestNewsOfOthersIsNotUrgent(t *testing.T) {
	mine, foreign := "pv-1", "pv-9"
	attachment := func(name string, volume *string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: volume}}}
	}
	c := fake.NewClientBuilder().WithObjects(attachment("a", &mine), attachment("b", &foreign)).Build()
	g := &clusters.ReadCache{}
	g.Clear()
	g.Volumes = map[string]bool{mine: true}
	on := g.Clients(&plans.Plan{}, clusters.Clusters{plans.Source: c})[plans.Source]
	if err := on.List(t.Context(), &corev1.PodList{}, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	if err := on.List(t.Context(), &storagev1.VolumeAttachmentList{}, client.Limit(10)); err != nil {
		t.Fatal(err)
	}
	r := run{Engine: &Engine{observer: &observer{reads: g}, memory: memory{plan: &plans.Plan{Source: plans.Ref{Name: "web"}}}}}
	for of, want := range map[clusters.ObjectKey]clusters.Urgency{
		{Cluster: plans.Source, Kind: "Pod", Namespace: "shop", Name: "web-0"}:      clusters.Now,
		{Cluster: plans.Source, Kind: "Pod", Namespace: "shop", Name: "batch-7"}:    clusters.Soon,
		{Cluster: plans.Source, Kind: "Pod", Namespace: "mall", Name: "web-0"}:      clusters.Never,
		{Cluster: plans.Source, Kind: "VolumeAttachment", Namespace: "", Name: "a"}: clusters.Now,
		{Cluster: plans.Source, Kind: "VolumeAttachment", Namespace: "", Name: "b"}: clusters.Soon,
	} {
		if got := g.News(clusters.Changes{Of: map[clusters.ObjectKey]clusters.Change{of: {Gone: true}}}, r.ofSet); got != want {
			t.Errorf("%v: %d, expected %d", of, got, want)
		}
	}
}

// Pods of others that change ten times a second cause one look per second.
func TestAWaitThatHearsOfOthersLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, wake := &clusters.ReadCache{}, clusters.NewChangeSignal()
		g.Clear()
		g.Lists[clusters.ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "shop"}] = &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		r := run{Engine: &Engine{observer: &observer{reads: g}, memory: memory{Process: Process{Recent: clusters.NewRecent()}, plan: &plans.Plan{Source: plans.Ref{Name: "web"}}}}, Options: Options{Wake: wake, StepTimeout: time.Hour}, deadline: time.NewTimer(time.Hour)}
		ctx, cancel := context.WithCancel(t.Context())
		quiet := make(chan struct{})
		go func() {
			defer close(quiet)
			for n := 2; ctx.Err() == nil; n++ {
				wake.Notify(clusters.ObjectKey{Cluster: plans.Source, Kind: "Pod", Namespace: "shop", Name: "batch"}, clusters.Change{Version: fmt.Sprint(n)})
				<-time.After(100 * time.Millisecond)
			}
		}()
		looks := 0
		for began := time.Now(); time.Since(began) < 10*time.Second; looks++ { //nolint:forbidigo // the clock of the bubble
			if err := r.wait(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		<-quiet
		if looks < 5 || looks > 15 {
			t.Errorf("%d looks in ten seconds", looks)
		}
	})
}
