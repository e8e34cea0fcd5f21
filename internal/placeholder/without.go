package placeholder

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/plans"
)

// WithoutAnnotation on a placeholder says why it was made without the program that waits.
const WithoutAnnotation = "stsmigrate.dev/placeholder-without"

// Without remembers on which sides the program that waits cannot be had, and why. It is of one process: the next one
// learns it from a placeholder that was made without it, or tries once more. So none is recreated for ever.
type Without struct {
	lock sync.Mutex
	why  map[plans.Side]string
}

func (w *Without) of(side plans.Side) string {
	if w == nil {
		return ""
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.why[side]
}

// learn reports whether a reason is remembered.
func (w *Without) learn(side plans.Side, why string) bool {
	if w == nil || why == "" {
		return false
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.why == nil {
		w.why = map[plans.Side]string{}
	}
	w.why[side] = plans.Line(why)
	return true
}

// sparing returns a placeholder without the program where it cannot be had.
func (s Steps) sparing(side plans.Side, p Place) Place {
	if p.Program.needed() {
		return p
	}
	if why := s.Without.of(side); why != "" && p.brings(&p.Pod.Spec) {
		p.Program, p.Without = Program{}, why
	}
	return p
}

// create sends a placeholder.
func (s Steps) create(ctx context.Context, m plans.StepContext, p Place, pod *corev1.Pod) error {
	err := s.On[m.To()].Create(ctx, pod)
	if err != nil {
		without := s.createWithout(ctx, m, p, err)
		if without == nil && s.Crowded.bears(pod.Name, err, s.now()) {
			if s.Anchors != nil {
				s.Anchors.refuse(m.To())
			}
			return nil
		}
		if pod = without; pod == nil {
			return err
		}
	}
	return s.late(ctx, m.To(), pod)
}

// createWithout sends a placeholder that was refused with an image of ours without it, and returns it; nil if it is not about
// the program. A cluster may let in the images of its own registry only.
func (s Steps) createWithout(ctx context.Context, m plans.StepContext, p Place, why error) *corev1.Pod {
	if !refused(why) || p.Program.needed() || !p.brings(&p.Pod.Spec) {
		return nil
	}
	p.Program, p.Without = Program{}, why.Error()
	pod, err := Make(p)
	if err != nil {
		return nil
	}
	m.Stamp.Put(pod)
	if s.On[m.To()].Create(ctx, pod) != nil {
		return nil
	}
	s.Without.learn(m.To(), p.Without)
	return pod
}

// refused reports whether what is in an object was refused. A quota asks for the same with the program and without it.
func refused(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !strings.Contains(err.Error(), answers.FullQuota)
}
