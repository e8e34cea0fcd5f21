package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The annotations and the finalizer that the real sidecars put on claims and volumes.
const (
	annProvisionedBy   = "pv.kubernetes.io/provisioned-by"
	annProvisioner     = "volume.kubernetes.io/storage-provisioner"
	annSelectedNode    = "volume.kubernetes.io/selected-node"
	provisionFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// Provisioner provisions, destroys, attaches and detaches the volumes of one cluster, as the
// external-provisioner (with HonorPVReclaimPolicy) and the external-attacher do beside a real
// driver. It acts on every volume of its drivers, regardless of who created the PersistentVolume.
type Provisioner struct {
	// Cluster is the name to record in the backend.
	Cluster string
	Config  *rest.Config
	Backend *Backend
	// DetachDelay is how long a detach takes.
	DetachDelay time.Duration

	client      kubernetes.Interface
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	classes     storagelisters.StorageClassLister
	attachments storagelisters.VolumeAttachmentLister
}

// Provision runs a Provisioner without delays until ctx ends.
func Provision(ctx context.Context, c *Cluster, b *Backend) error {
	p := Provisioner{Cluster: c.Name, Config: c.Config(), Backend: b}
	return p.Run(ctx)
}

// Run reconciles until ctx ends. It then returns nil.
func (p *Provisioner) Run(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return err
	}
	p.client = client
	factory := informers.NewSharedInformerFactory(client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	p.claims, p.volumes = core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister()
	p.classes, p.attachments = storage.StorageClasses().Lister(), storage.VolumeAttachments().Lister()

	claims, volumes, attachments := newLoop(p.syncClaim), newLoop(p.syncVolume), newLoop(p.syncAttachment)
	err = errors.Join(
		claims.watch(core.PersistentVolumeClaims().Informer(), cache.MetaNamespaceKeyFunc),
		volumes.watch(core.PersistentVolumes().Informer(), cache.MetaNamespaceKeyFunc),
		attachments.watch(storage.VolumeAttachments().Informer(), cache.MetaNamespaceKeyFunc),
		// A volume may be waiting for the removal of its last attachment.
		volumes.watch(storage.VolumeAttachments().Informer(), attachedVolume),
	)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	var running sync.WaitGroup
	for _, l := range []*loop{claims, volumes, attachments} {
		running.Go(func() { l.run(ctx) })
	}
	running.Wait()
	return nil
}

// syncClaim provisions a volume for a claim that waits for one of the bed's drivers.
func (p *Provisioner) syncClaim(ctx context.Context, key string, _ *loop) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	claim, err := p.claims.PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	class, err := p.wanted(claim)
	if class == nil || err != nil {
		return err
	}
	volumeName := "pvc-" + string(claim.UID)
	if _, err := p.volumes.Get(volumeName); err == nil {
		return nil
	}
	volume := p.volumeFor(claim, class, volumeName)
	// Create the data BEFORE the object that names it, as a real driver does.
	if err := p.Backend.create(p.event(volume, "")); err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache was stale
	}
	return err
}

// wanted returns the class to provision the claim from, or nil if the claim needs no volume from
// this provisioner, or not yet. The annotations are the volume controller's request.
func (p *Provisioner) wanted(claim *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil || claim.DeletionTimestamp != nil {
		return nil, nil
	}
	if !ours(claim.Annotations[annProvisioner]) {
		return nil, nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return nil, err
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[annSelectedNode] == "" {
		return nil, nil
	}
	return class, nil
}

func (p *Provisioner) volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, name string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{annProvisionedBy: class.Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           class.Provisioner,
				VolumeHandle:     handleFor(claim),
				FSType:           "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": p.Cluster + "-" + class.Provisioner},
			}},
		},
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		volume.Finalizers = []string{provisionFinalizer}
	}
	return volume
}

// handleFor derives the handle from the claim alone: a create that is retried, after an error or by
// another process, must find the volume of the first attempt.
func handleFor(claim *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("vol-%x", sha256.Sum256([]byte(claim.UID)))[:16]
}

func (p *Provisioner) event(volume *corev1.PersistentVolume, node string) Event {
	return Event{Handle: volume.Spec.CSI.VolumeHandle, Cluster: p.Cluster, Volume: volume.Name, Node: node}
}

func ours(driver string) bool { return driver == Driver || driver == AttachDriver }

// provisionedBy returns the driver that is responsible for a volume. For a volume created by hand
// it is the CSI driver.
func provisionedBy(volume *corev1.PersistentVolume) string {
	if by, ok := volume.Annotations[annProvisionedBy]; ok {
		return by
	}
	return volume.Spec.CSI.Driver
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
