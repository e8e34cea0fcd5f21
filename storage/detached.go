package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Detached checks that the volumes of a wave are still detached on the side that released them. Vacate has
// proven it. But a wait or the death of a process may lie between, and a pod of another writer may have
// mounted a claim meanwhile. Where both sides have one object of a volume, the control plane itself keeps it from
// two nodes, by its name. Of all others Detached reads it again before the other side can have them (S1).
func Detached(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext) (plans.Observation, error) {
	return vacancy{objects: objects{clusters.Pair{Plan: p, On: on}}}.detachedAgain(ctx, m)
}

// Attached returns the reason why a wave must not leave yet, and the side in whose cluster that is, or "": a volume of it
// is attached where no pod of the wave runs, in the cluster that releases it or in another one that receives it. Vacate
// would wait for that with the ordinal down, and the driver of a node that is gone may never detach it (S17). The flight
// has the pods of the wave, and the nodes that the user has vouched for. What another node has attached since a pod has
// come from there is detached soon.
func Attached(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext, flight *plans.Flight) (plans.Side, string, error) {
	v := vacancy{objects: objects{clusters.Pair{Plan: p, On: on}}}
	if m.Reversed {
		return "", "", nil // it may have left already
	}
	for _, side := range []plans.Side{m.From, m.To()} {
		of := flight
		if side != m.From {
			of = v.apart(flight)
		}
		still, err := v.attachments(ctx, of, side)
		if err != nil {
			return "", "", err
		}
		for _, a := range still {
			if side == m.From && a.node == flight.Pod(a.volume.Ordinal).Node {
				continue
			}
			why, err := v.untilDetached(ctx, side, flight, a)
			if err != nil || why != "" {
				return side, why, err
			}
		}
	}
	return "", "", nil
}

// untilDetached returns the reason why a wave that is up waits for an attachment, or "".
func (v vacancy) untilDetached(ctx context.Context, side plans.Side, flight *plans.Flight, a attached) (string, error) {
	node, err := v.nodeOf(ctx, side, a.node)
	if err != nil || v.vouched(side, flight, a, node) {
		return "", err
	}
	where := "which exists, and where no pod of the wave runs"
	if node == nil {
		where = "which does not exist any more"
	}
	return fmt.Sprintf("on the %s, %s, %s; no pod is scaled down until it is detached; its driver detaches it; if it never does, and the volume cannot be in use there, confirm it with --node-gone %s", side, a.still(), where, a.node), nil
}

func (v vacancy) detachedAgain(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if !m.InFlight() {
		return plans.Done(), nil
	}
	return v.detached(ctx, v.apart(m.Flight), m.From)
}

// apart returns a flight with those of its volumes that no control plane keeps from two nodes by their name, since each
// side has an object of its own for the disk.
func (v vacancy) apart(flight *plans.Flight) *plans.Flight {
	of := *flight
	of.Volumes = slices.DeleteFunc(slices.Clone(of.Volumes), func(vol plans.Volume) bool { return v.mode(vol.Template).OneObject() })
	return &of
}

// free lets a look write only while the volumes are detached on the side that released them.
func (v vacancy) free(look plans.Look) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		s, err := look(ctx, m)
		if err != nil || s.Standing != plans.Before {
			return s, err
		}
		if still, err := v.detachedAgain(ctx, m); err != nil || still.Standing != plans.After {
			return still.Idly(), err
		}
		return s, nil
	}
}

// detached waits until the cluster of a side has no VolumeAttachment for the volumes. It ignores nodes that the user
// has vouched for.
func (v vacancy) detached(ctx context.Context, flight *plans.Flight, side plans.Side) (plans.Observation, error) {
	still, err := v.attachments(ctx, flight, side)
	if err != nil {
		return plans.Observation{}, err
	}
	for _, a := range still {
		node, err := v.nodeOf(ctx, side, a.node)
		if err != nil || !v.vouched(side, flight, a, node) {
			return plans.Wait(reasons.VolumeAttached, a.String()), err
		}
	}
	return plans.Done(), nil
}

// attachments lists the VolumeAttachments of the volumes of a flight in the cluster of a side.
func (v vacancy) attachments(ctx context.Context, flight *plans.Flight, side plans.Side) (still []attached, err error) {
	if len(flight.Volumes) == 0 {
		return nil, nil
	}
	err = clusters.Each(ctx, v.On[side], func() client.ObjectList { return &storagev1.VolumeAttachmentList{} }, func(a *storagev1.VolumeAttachment) {
		for _, vol := range flight.Volumes {
			if n := a.Spec.Source.PersistentVolumeName; n != nil && *n == vol.Name {
				still = append(still, attached{vol, a.Name, a.Spec.NodeName, failed(a)})
			}
		}
	}, attachmentsOf(flight))
	if err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments on the %s: %w", side, err)
	}
	return still, nil
}

// attachmentsOf selects what a look needs of the VolumeAttachments of volumes, and needs those of a wave. The volume of
// one never changes. The need is named by the volumes: a confirmed journal may name other ones for the same ordinals.
func attachmentsOf(flight *plans.Flight) clusters.Only {
	names := make([]string, 0, len(flight.Volumes))
	for _, v := range flight.Volumes {
		names = append(names, v.Name)
	}
	return clusters.Only{Of: "the attachments of volumes", Fixed: true, Keep: ofVolume, For: strings.Join(names, ", "), Needs: func(o client.Object) bool {
		a, ok := o.(*storagev1.VolumeAttachment)
		return ok && slices.Contains(names, *a.Spec.Source.PersistentVolumeName)
	}}
}

// ofVolume returns what is needed of the VolumeAttachment of a volume, or nil for one of something else.
func ofVolume(o client.Object) client.Object {
	a, ok := o.(*storagev1.VolumeAttachment)
	if !ok || a.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	out := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: a.Name, ResourceVersion: a.ResourceVersion}, Spec: a.Spec, Status: a.Status}
	out.Spec.Source.InlineVolumeSpec, out.Status.AttachmentMetadata, out.Status.DetachError = nil, nil, nil
	return out.DeepCopy()
}

// attached is a VolumeAttachment of a volume of the wave.
type attached struct {
	volume     plans.Volume
	name, node string
	failed     string // why the volume was never attached, if the driver reports it
}

func (a attached) String() string {
	if a.failed != "" {
		return fmt.Sprintf("%s, and its driver has not removed the attachment yet; if the volume cannot be in use there, confirm it with --node-gone %s", a.still(), a.node)
	}
	return a.still()
}

// still says what is attached where.
func (a attached) still() string {
	if a.failed != "" {
		return fmt.Sprintf("volume %s could not be attached to node %s (VolumeAttachment %s: %s)", a.volume.Name, a.node, a.name, a.failed)
	}
	return fmt.Sprintf("volume %s is still attached to node %s (VolumeAttachment %s)", a.volume.Name, a.node, a.name)
}

func failed(a *storagev1.VolumeAttachment) string {
	if a.Status.Attached || a.Status.AttachError == nil {
		return ""
	}
	line, _, _ := strings.Cut(a.Status.AttachError.Message, "\n")
	return line[:min(len(line), 200)]
}

// vouched reports whether the user has vouched that the node of this side cannot use the volume. A node that is Ready and
// reports the volume in use overrides the user's word.
func (v vacancy) vouched(side plans.Side, flight *plans.Flight, a attached, node *corev1.Node) bool {
	gone := flight.NodesGone
	if side != flight.From {
		gone = flight.NodesGoneThere
	}
	return slices.Contains(gone, a.node) && (node == nil || !NodeReady(node) || unused(node, []plans.Volume{a.volume}).Standing == plans.After)
}

// freed describes the evidence that the volumes of an ordinal are free. A driver that never attaches leaves
// nothing to check; then the end of the pod is the only evidence.
func (v vacancy) freed(ctx context.Context, m plans.StepContext, volumes []plans.Volume) (string, error) {
	if len(volumes) == 0 {
		return "", nil
	}
	vol, err := v.never(ctx, m.From, volumes)
	if err != nil {
		return "", err
	}
	if vol != "" {
		return fmt.Sprintf("; volume %s is of a kind that is never attached, so the end of its pod is the proof", vol), nil
	}
	return ", none of its volumes is in use there, and no VolumeAttachment names one", nil
}

// attaches reports whether a volume is attached to nodes at all.
func (v vacancy) attaches(ctx context.Context, side plans.Side, vol plans.Volume) (bool, error) {
	driver, _, _ := strings.Cut(vol.Handle, "^")
	if neverAttached(driver) {
		return false, nil
	}
	return Attaches(ctx, v.On[side], driver, side)
}

// Attaches reports whether a CSI driver uses VolumeAttachments. It returns true, the default of Kubernetes,
// if the driver does not specify it, has no CSIDriver object, or the read is forbidden.
func Attaches(ctx context.Context, c client.Reader, driver string, side plans.Side) (bool, error) {
	var d storagev1.CSIDriver
	err := c.Get(ctx, client.ObjectKey{Name: driver}, &d)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading CSIDriver %s on the %s: %w", driver, side, err)
	}
	return d.Spec.AttachRequired == nil || *d.Spec.AttachRequired, nil
}
