package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A stranger is a pod other than the set's own that names a claim of an ordinal on the side that receives the ordinal. It
// may have waited for that claim since long before the plan, and is scheduled the moment that there is one. So no claim
// is made, and no ordinal is taken, while there is a stranger (S20). Nothing but admission could keep one from coming
// after the last look.

// Strange waits while a side has a stranger for a wave. Before the wave leaves, the wait is with everything up.
func Strange(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, wave plans.Slice) (plans.Observation, error) {
	v := objects{clusters.Pair{Plan: p, On: on}}
	for o := range wave.All() {
		for _, c := range p.Moved() {
			if s, err := v.strange(ctx, side, c.Template, o); err != nil || s.Standing != plans.After {
				return s, err
			}
		}
	}
	return plans.Done(), nil
}

func (v objects) strange(ctx context.Context, side plans.Side, template string, ordinal int32) (plans.Observation, error) {
	pods, err := v.EveryPod(ctx, side)
	if err != nil {
		return plans.Observation{}, err
	}
	claim := v.Plan.ClaimName(side, template, ordinal)
	for i := range pods {
		if pods[i].Name == v.Plan.Pod(side, ordinal) || !Names(&pods[i], claim) {
			continue
		}
		return plans.Wait(reasons.ClaimWanted, fmt.Sprintf("%s of %s names claim %s, and would get the disk of %s the moment that the claim is there; %s",
			Stranger(&pods[i]), v.Plan.On(side), claim, v.Plan.Pod(side, ordinal), Dismissal(&pods[i]))), nil
	}
	return plans.Done(), nil
}

// Names reports whether a pod mounts a claim, or will once it can: a pod that has ended does not.
func Names(pod *corev1.Pod, claim string) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && Mounts(pod, claim)
}

// Stranger describes a pod by its phase and its owner.
func Stranger(pod *corev1.Pod) string {
	about := []string{string(pod.Status.Phase)}
	if pod.DeletionTimestamp != nil {
		about = []string{"being deleted"}
	}
	if o := metav1.GetControllerOf(pod); o != nil {
		about = append(about, "of "+o.Kind+" "+o.Name)
	}
	return strings.Replace(fmt.Sprintf("pod %s (%s)", pod.Name, strings.Join(about, ", ")), "(, ", "(", 1)
}

// Dismissal says what to do about a stranger. A Job that is deleted takes its pods along, and its CronJob makes the next.
func Dismissal(pod *corev1.Pod) string {
	switch o := metav1.GetControllerOf(pod); {
	case o == nil:
		return "delete the pod"
	case o.Kind == "Job":
		return fmt.Sprintf("suspend the CronJob that makes Job %s, if there is one, and delete the Job", o.Name)
	default:
		return fmt.Sprintf("scale %s %s to 0, or delete it", o.Kind, o.Name)
	}
}

// withdraw deletes a claim of this plan that is there before its ordinal has left: a process that was fenced has made it
// late. It would be like the claim that leaves was then, and a pod could mount it (S20). Its volume is Retain, which is
// read live (S4), and no pod mounts the claim. Reserve readies the volume for the next claim.
func (v departure) withdraw(ctx context.Context, m plans.StepContext, vol plans.Volume, there *corev1.PersistentVolumeClaim) (plans.Observation, error) {
	if why := m.Stamp.Barred(there); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("claim %s %s", there.Name, why)), nil
	}
	if users, err := v.users(ctx, m.To(), there); err != nil || users != "" {
		return plans.Wait(reasons.ClaimMounted, fmt.Sprintf("claim %s of %s is mounted by pod %s, and no pod may mount it before the ordinal arrives; no pod is scaled down until that pod is gone: delete it", there.Name, v.Plan.On(m.To()), users)), err
	}
	volume, err := v.Live().Volume(ctx, m.To(), vol.Name)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := v.unsafe(volume.Object(), vol); why != "" {
		return plans.Stop(reasons.VolumeUnsafe, why), nil
	}
	return plans.Write(fmt.Sprintf("%s: delete claim %s, which was made too early (volume %s is protected)", m.To(), there.Name, vol.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.DeleteClaim(ctx, v.On[m.To()], there, volume) }), nil
}
