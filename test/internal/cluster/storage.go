package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/storage"
)

// The drivers of the bed. Both keep their volumes in the Backend.
const (
	// Driver needs no attaching, like a shared file system.
	Driver = "disk.stsmigrate.dev"
	// AttachDriver is for volumes that can be attached to one node at a time.
	AttachDriver = "attach.stsmigrate.dev"
)

// The storage classes of the bed. All of them reclaim with Delete.
const (
	// SharedClass binds at once, with Driver.
	SharedClass = "shared"
	// WaitClass waits for the first consumer, with Driver.
	WaitClass = "shared-wffc"
	// AttachedClass binds at once, with AttachDriver.
	AttachedClass = "attached"
)

// InstallStorage creates the storage classes and the drivers' objects in one cluster. Existing
// objects are left unchanged.
func InstallStorage(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for driver, attach := range map[string]bool{Driver: false, AttachDriver: true} {
		_, err := client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
			// The annotation is an administrator's declaration that both clusters use one backend.
			ObjectMeta: metav1.ObjectMeta{Name: driver, Annotations: map[string]string{storage.PortableAnnotation: "true"}},
			Spec:       storagev1.CSIDriverSpec{AttachRequired: &attach},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CSIDriver %s: %w", driver, err)
		}
	}
	for _, class := range storageClasses() {
		_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create StorageClass %s: %w", class.Name, err)
		}
	}
	return installOnNodes(ctx, client)
}

// MakeDefault lets claims that name no StorageClass have the one that clusters share.
func MakeDefault(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.StorageV1().StorageClasses().Patch(ctx, SharedClass, types.MergePatchType, []byte(`{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`), metav1.PatchOptions{})
	return err
}

func storageClasses() []*storagev1.StorageClass {
	class := func(name, driver string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
		expand, policy := true, corev1.PersistentVolumeReclaimDelete
		return &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name},
			Provisioner:          driver,
			ReclaimPolicy:        &policy,
			AllowVolumeExpansion: &expand,
			VolumeBindingMode:    &mode,
		}
	}
	return []*storagev1.StorageClass{
		class(SharedClass, Driver, storagev1.VolumeBindingImmediate),
		class(WaitClass, Driver, storagev1.VolumeBindingWaitForFirstConsumer),
		class(AttachedClass, AttachDriver, storagev1.VolumeBindingImmediate),
	}
}

// installOnNodes writes the objects that a kubelet writes when a driver registers with it.
func installOnNodes(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		_, err := client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{
				Name:            node.Name,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
			},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: Driver, NodeID: node.Name},
				{Name: AttachDriver, NodeID: node.Name},
			}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CSINode %s: %w", node.Name, err)
		}
	}
	return nil
}
