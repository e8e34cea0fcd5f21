package cluster_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

const provisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"

func TestDeletingAClaim(t *testing.T) {
	client := clientOf(t, bed.East)
	ns := namespaceOf(t, client)
	createSet(t, client, set(ns, cluster.SharedClass, 2, 0))
	allReady(t, client, ns, 2)
	kept, lost := volumeOf(t, client, ns, "data-web-0"), volumeOf(t, client, ns, "data-web-1")
	if !slices.Contains(lost.Finalizers, provisionerFinalizer) {
		t.Errorf("finalizers of a volume with Delete: %v", lost.Finalizers)
	}
	setPolicy(t, client, kept.Name, corev1.PersistentVolumeReclaimRetain)
	eventually(t, "Retain takes the finalizer away", func(ctx context.Context) (bool, error) {
		v, err := client.CoreV1().PersistentVolumes().Get(ctx, kept.Name, metav1.GetOptions{})
		return err == nil && !slices.Contains(v.Finalizers, provisionerFinalizer), err
	})
	deleteSet(t, client, ns)

	t.Run("Delete destroys the volume", func(t *testing.T) {
		deleteClaim(t, client, ns, "data-web-1")
		eventually(t, "the volume is destroyed", func(context.Context) (bool, error) { return isDestroyed(lost) })
		eventually(t, "the object is gone", gone(client, lost.Name))
	})
	t.Run("Retain keeps it, until Delete", func(t *testing.T) {
		deleteClaim(t, client, ns, "data-web-0")
		eventually(t, "the volume is released", func(ctx context.Context) (bool, error) {
			v, err := client.CoreV1().PersistentVolumes().Get(ctx, kept.Name, metav1.GetOptions{})
			return err == nil && v.Status.Phase == corev1.VolumeReleased, err
		})
		if yes, err := isDestroyed(kept); yes || err != nil {
			t.Fatalf("destroyed: %v, error %v", yes, err)
		}
		setPolicy(t, client, kept.Name, corev1.PersistentVolumeReclaimDelete)
		eventually(t, "the volume is destroyed", func(context.Context) (bool, error) { return isDestroyed(kept) })
	})
}

func TestWaitsForTheFirstConsumer(t *testing.T) {
	client := clientOf(t, bed.West)
	ns := namespaceOf(t, client)
	alone := claim("alone", cluster.WaitClass)
	if _, err := client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), &alone, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createSet(t, client, set(ns, cluster.WaitClass, 1, 0))
	allReady(t, client, ns, 1)
	c, err := client.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "alone", metav1.GetOptions{})
	if err != nil || c.Status.Phase != corev1.ClaimPending {
		t.Errorf("the claim without a pod is %s, error %v", c.Status.Phase, err)
	}
}

// The test moves a volume from one cluster to the other by the steps of an administrator.
func TestMovesAVolumeBetweenClusters(t *testing.T) {
	east, west := clientOf(t, bed.East), clientOf(t, bed.West)
	ns := namespaceOf(t, east)
	createSet(t, east, set(ns, cluster.AttachedClass, 1, 0))
	allReady(t, east, ns, 1)
	volume := volumeOf(t, east, ns, "data-web-0")
	eventually(t, "the volume is attached in east", attached(east, volume.Name))
	setPolicy(t, east, volume.Name, corev1.PersistentVolumeReclaimRetain)

	importVolume(t, west, ns, volume)
	createSet(t, west, set(ns, cluster.AttachedClass, 1, 0))
	eventually(t, "west cannot have the volume meanwhile", func(ctx context.Context) (bool, error) {
		a, err := attachmentsOf(ctx, west, volume.Name)
		return len(a) == 1 && a[0] != "" && strings.Contains(a[0], "of east"), err
	})
	if v, err := bed.Backend.Volumes(); err != nil || v[volume.Spec.CSI.VolumeHandle].Refused == nil {
		t.Errorf("the refusal is not on record (error %v)", err)
	}
	deleteSet(t, west, ns)
	eventually(t, "the refused attachment is gone", unattached(west, volume.Name))

	deleteSet(t, east, ns)
	eventually(t, "the attachment in east is gone", unattached(east, volume.Name))
	createSet(t, west, set(ns, cluster.AttachedClass, 1, 0))
	eventually(t, "the volume is attached in west", attached(west, volume.Name))

	deleteClaim(t, east, ns, "data-web-0")
	if err := east.CoreV1().PersistentVolumes().Delete(t.Context(), volume.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "east has forgotten the volume", gone(east, volume.Name))
	if yes, err := isDestroyed(volume); yes || err != nil {
		t.Fatalf("destroyed: %v, error %v", yes, err)
	}

	setPolicy(t, west, volume.Name, corev1.PersistentVolumeReclaimDelete)
	deleteSet(t, west, ns)
	deleteClaim(t, west, ns, "data-web-0")
	eventually(t, "west destroys what is now its own", func(context.Context) (bool, error) { return isDestroyed(volume) })
	eventually(t, "the object is gone", gone(west, volume.Name))
}

// importVolume creates, in another cluster, a volume and the claim that it is for.
func importVolume(t *testing.T, client kubernetes.Interface, ns string, v *corev1.PersistentVolume) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	moved := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Annotations: v.Annotations},
		Spec:       *v.Spec.DeepCopy(),
	}
	moved.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	moved.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "data-web-0"}
	if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), moved, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := claim("data-web-0", cluster.AttachedClass)
	c.Spec.VolumeName = v.Name
	if _, err := client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), &c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// attachmentsOf returns, for each attachment of a volume, why it is not attached: "" if it is
// attached.
func attachmentsOf(ctx context.Context, client kubernetes.Interface, volume string) ([]string, error) {
	list, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var states []string
	for _, a := range list.Items {
		if name := a.Spec.Source.PersistentVolumeName; name == nil || *name != volume {
			continue
		}
		switch {
		case a.Status.Attached:
			states = append(states, "")
		case a.Status.AttachError != nil:
			states = append(states, a.Status.AttachError.Message)
		default:
			states = append(states, "not yet")
		}
	}
	return states, nil
}

func attached(client kubernetes.Interface, volume string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		a, err := attachmentsOf(ctx, client, volume)
		return len(a) == 1 && a[0] == "", err
	}
}

func unattached(client kubernetes.Interface, volume string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		a, err := attachmentsOf(ctx, client, volume)
		return len(a) == 0, err
	}
}

func gone(client kubernetes.Interface, volume string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
}

func isDestroyed(v *corev1.PersistentVolume) (bool, error) {
	handles, err := bed.Backend.Destroyed()
	return slices.Contains(handles, v.Spec.CSI.VolumeHandle), err
}

func setPolicy(t *testing.T, client kubernetes.Interface, volume string, policy corev1.PersistentVolumeReclaimPolicy) {
	t.Helper()
	patch := `{"spec":{"persistentVolumeReclaimPolicy":"` + string(policy) + `"}}`
	_, err := client.CoreV1().PersistentVolumes().Patch(t.Context(), volume, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func deleteSet(t *testing.T, client kubernetes.Interface, ns string) {
	t.Helper()
	if err := client.AppsV1().StatefulSets(ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods are gone", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

func deleteClaim(t *testing.T, client kubernetes.Interface, ns, name string) {
	t.Helper()
	if err := client.CoreV1().PersistentVolumeClaims(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
