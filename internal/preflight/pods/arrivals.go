package pods

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// question is about the pods that are still to come, with their names.
type question struct {
	scheduling.Question

	names []string
	// pod is one of them, and spec theirs.
	pod  scheduling.Pod
	spec corev1.PodSpec
	// volumes are the names of their volumes.
	volumes map[string]bool
}

// disksOf returns the disks of a pod, by its index.
func (q question) disksOf(pod int) []scheduling.Disk {
	for _, wave := range q.Waves {
		if pod < len(wave.Arrives) {
			return wave.Arrives[pod].Pod.Disks
		}
		pod -= len(wave.Arrives)
	}
	return nil
}

// asked makes the question for all waves that have not left yet. Who leaves is added where there is one cluster.
func asked(ctx context.Context, i check.Inspection) (q question, err error) {
	set, err := i.Receives()
	if err != nil {
		return q, err
	}
	tried, err := admitted(ctx, i)
	if err != nil {
		return q, err
	}
	q.volumes = map[string]bool{}
	q.Together = set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
	for n, slice := range i.Waves() {
		var wave scheduling.Wave
		for o := range slice.All() {
			where, err := reachOf(ctx, i, o, n > 0)
			if err != nil {
				return q, err
			}
			a, err := arrival(set, tried, o, where)
			if err != nil {
				return q, err
			}
			for _, name := range where.names {
				q.volumes[name] = true
			}
			wave.Arrives, q.names = append(wave.Arrives, a), append(q.names, i.Plan.Pod(i.To(), o))
			q.pod, q.spec = a.Pod, *a.Spec
		}
		q.Waves = append(q.Waves, wave)
	}
	return q, nil
}

// arrival is the pod of an ordinal as it will come. tried is one that was let in, or nil.
func arrival(set *appsv1.StatefulSet, tried *corev1.Pod, ordinal int32, where reach) (scheduling.Arrival, error) {
	pod := build.Pod(set, ordinal)
	if tried != nil {
		spec := tried.Spec.DeepCopy()
		spec.Volumes, spec.Hostname = pod.Spec.Volumes, pod.Spec.Hostname
		labels := map[string]string{}
		for _, of := range []map[string]string{tried.Labels, pod.Labels} {
			for key, value := range of {
				labels[key] = value
			}
		}
		pod.Spec, pod.Labels = *spec, labels
	}
	revision(set, pod)
	p, err := scheduling.PodOf(pod)
	if err != nil {
		return scheduling.Arrival{}, err
	}
	p.Disks = where.disks
	return scheduling.Arrival{Pod: p, Spec: &pod.Spec, Reach: where.nodes}, nil
}

// revision gives a pod the label by which rules tell the revisions of a set apart.
func revision(set *appsv1.StatefulSet, pod *corev1.Pod) {
	of := set.Status.UpdateRevision
	if of == "" || set.UID == "" {
		of = "to-come" // which no pod has
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = of
}

// admitted is a pod of the set as the API server of the side that receives it lets it in: with the defaults of the
// namespace, what webhooks add, its priority and overhead. It is nil where that cannot be tried.
func admitted(ctx context.Context, i check.Inspection) (*corev1.Pod, error) {
	return check.Kept(i, admittedOn(i.To()), func() (*corev1.Pod, error) {
		may, err := mayTry(ctx, i)
		if err != nil || !may {
			return nil, err
		}
		t, err := dryRunPod(ctx, i)
		if err != nil || t.refusal != nil { // the check pod-accepted reports it
			return nil, err
		}
		return t.pod, nil
	})
}

// reach is where the volumes of an ordinal can be reached, and those that are attached.
type reach struct {
	nodes []*corev1.NodeSelector
	disks []scheduling.Disk
	names []string // of the volume objects
}

// reachOf returns the reach of an ordinal. That of one that comes later is read once.
func reachOf(ctx context.Context, i check.Inspection, ordinal int32, later bool) (reach, error) {
	if !i.Midway || !later {
		return readReach(ctx, i, ordinal)
	}
	return check.Lasting(i, reachKey{i.From, ordinal}, func() (reach, error) {
		return readReach(ctx, i.Of(plans.Slice{Start: ordinal, Replicas: 1}), ordinal)
	})
}

func readReach(ctx context.Context, i check.Inspection, ordinal int32) (out reach, err error) {
	if len(i.Plan.Claims) > 0 {
		if err = out.moving(ctx, i, ordinal); err != nil {
			return out, err
		}
	}
	return out, out.made(ctx, i, ordinal)
}

// moving adds the volumes that move.
func (r *reach) moving(ctx context.Context, i check.Inspection, ordinal int32) error {
	s, err := volumes.On(ctx, i, plans.Source)
	if err != nil {
		return err
	}
	b, err := i.Volumes(ctx, ordinal)
	for _, v := range b.Volumes {
		pv := s.ByName[v.Name]
		if pv == nil {
			continue
		}
		if !i.Plan.OneCluster() && i.From == plans.Source { // on the way back it is the source's own
			pv = storage.VolumeFrom(pv, corev1.ObjectReference{}, i.Plan.Storage)
		}
		r.add(pv)
	}
	return err
}

func (r *reach) add(pv *corev1.PersistentVolume) {
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		r.nodes = append(r.nodes, a.Required)
	}
	r.nodes, r.names = append(r.nodes, zones(pv)...), append(r.names, pv.Name)
	if csi := pv.Spec.CSI; csi != nil {
		r.disks = append(r.disks, scheduling.Disk{Driver: csi.Driver, Handle: csi.VolumeHandle})
	}
}

// made adds the volumes that are made for the ordinal, by the places where their classes make any.
func (r *reach) made(ctx context.Context, i check.Inspection, ordinal int32) error {
	set, err := i.Receives()
	if err != nil {
		return err
	}
	for _, t := range set.Spec.VolumeClaimTemplates {
		if !slices.Contains(i.Plan.Claims, plans.ClaimMove{Template: t.Name, Mode: plans.Empty}) {
			continue
		}
		if there, err := r.kept(ctx, i, i.Plan.ClaimName(i.To(), t.Name, ordinal)); there || err != nil {
			return err
		}
		if err := r.classed(ctx, i, t.Spec.StorageClassName); err != nil {
			return err
		}
	}
	for _, spec := range sets.Ephemeral(set.Spec.Template.Spec) {
		if err := r.classed(ctx, i, spec.Spec.StorageClassName); err != nil {
			return err
		}
	}
	return nil
}

// kept adds the volume of a claim that has stayed on the side which the ordinals come to.
func (r *reach) kept(ctx context.Context, i check.Inspection, name string) (bool, error) {
	claim, err := i.Claim(ctx, i.To(), name)
	if err != nil || claim == nil || claim.Spec.VolumeName == "" {
		return false, err
	}
	var pv corev1.PersistentVolume
	err = i.On[i.To()].Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &pv)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return true, nil
	}
	if err == nil {
		r.add(&pv)
	}
	return true, err
}

// classed adds where a class makes volumes. A class that is missing, or may not be read, is another check's.
func (r *reach) classed(ctx context.Context, i check.Inspection, name *string) error {
	if ptr.Deref(name, "") == "" {
		return nil
	}
	o, err := propertyOn(ctx, i, i.To(), storageClass(*name))
	class, _ := o.(*storagev1.StorageClass)
	if err = check.IgnoreForbidden(err); err != nil || class == nil || len(class.AllowedTopologies) == 0 {
		return err
	}
	var allowed corev1.NodeSelector
	for _, t := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		allowed.NodeSelectorTerms = append(allowed.NodeSelectorTerms, term)
	}
	r.nodes = append(r.nodes, &allowed)
	return nil
}

// admittedOn is the key of check.Kept for the pod that a side has let in, and reachKey of check.Lasting for a reach.
type (
	admittedOn plans.Side
	reachKey   struct {
		from    plans.Side
		ordinal int32
	}
)
