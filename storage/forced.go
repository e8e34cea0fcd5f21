package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// This file holds what is believed of a pod whose object has gone before its kubelet has reported the end of its
// containers. A forced deletion does that in an instant, and the kubelet is only then told to end them. For a volume that
// nodes attach, the kubelet reports until when it uses it. For one that is never attached nothing shows that, and the
// grace period of the pod is what its containers have.

// ends is since when this process has known that pods are being deleted. No time of another process or of an API server
// is compared with it: their clocks may differ (S1). A process that finds a pod gone counts from then.
type ends struct {
	now   func() time.Time
	lock  sync.Mutex
	known map[types.UID]time.Time
}

// lasted returns how long this process has known that a pod is being deleted, by the monotonic clock: it stands still while
// the machine sleeps, and is never set.
func (e *ends) lasted(pod types.UID) time.Duration {
	if e == nil || e.now == nil {
		return 0
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	now := e.now()
	if e.known == nil {
		e.known = map[types.UID]time.Time{}
	}
	since, ok := e.known[pod]
	if !ok {
		e.known[pod], since = now, now
	}
	return now.Sub(since)
}

// defaultGrace is the grace period of a pod that specifies none.
const defaultGrace = 30

// Grace returns for how many seconds the containers of a pod may run once it is being deleted.
func Grace(pod *corev1.Pod) int64 {
	grace := int64(defaultGrace)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = *s
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		grace = max(grace, *s)
	}
	return max(grace, 1) // as kubelets have it
}

// outlived waits until the grace period of a pod is over that has gone before its kubelet reported its end, if one of its
// volumes is never attached. After: the reason is why its containers have ended, "" where their volumes show it.
func (v vacancy) outlived(ctx context.Context, m plans.StepContext, flight *plans.Flight, pod *plans.Pod) (plans.Observation, error) {
	vol, err := v.never(ctx, m.From, flight.Of(pod.Ordinal))
	if err != nil || vol == "" {
		return plans.Done(), err
	}
	grace := time.Duration(pod.Grace) * time.Second
	if grace <= 0 { // an earlier release has recorded the pod
		grace = defaultGrace * time.Second
	}
	done := plans.Done()
	if left := grace - v.ends.lasted(pod.UID); left > 0 {
		wait := plans.Wait(reasons.PodEndNotSeen, fmt.Sprintf("pod %s of %s is gone, and the kubelet of node %s was not seen to report the end of its containers, as after a forced deletion; volume %s is of a kind that is never attached, so nothing else shows that end; waiting until the grace period of the pod, %s, is over; if its containers have ended for certain, confirm it with --node-gone %s",
			v.Plan.Pod(m.From, pod.Ordinal), v.Plan.On(m.From), pod.Node, vol, grace, pod.Node))
		wait.Again = left
		return wait, nil
	}
	done.Reason = fmt.Sprintf(", and the grace period of its pod, %s, is over", grace)
	return done, nil
}

// never names a volume that is never attached, or returns "".
func (v vacancy) never(ctx context.Context, side plans.Side, volumes []plans.Volume) (string, error) {
	for _, vol := range volumes {
		attaches, err := v.attaches(ctx, side, vol)
		if err != nil {
			return "", err
		}
		if !attaches {
			return vol.Name, nil
		}
	}
	return "", nil
}
