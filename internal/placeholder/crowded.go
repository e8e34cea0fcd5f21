package placeholder

import (
	"context"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A quota may have room for as many pods as there are ordinals. Then it is full for the next placeholder while an anchor is
// there, and a moment longer: what a pod that is gone has used is counted some time later. So a placeholder that such a quota
// refuses is sent again for a while, and the anchors go: a place is worth more than where it is.

const (
	// crowdedFor is how long a placeholder is sent again that a quota refuses.
	crowdedFor = 15 * time.Second
	// crowdedPause is how long it is waited for between two of these.
	crowdedPause = time.Second
)

// Crowded remembers which placeholders a quota refuses. It is of one process: the next one tries once more. With nil, the first
// refusal counts.
type Crowded struct {
	lock sync.Mutex
	by   map[string]crowd
}

// crowd is how a placeholder was refused.
type crowd struct {
	first, last time.Time
	why         string
}

// bears reports whether a refusal of a placeholder is borne, for now.
func (c *Crowded) bears(name string, err error, now time.Time) bool {
	if c == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), answers.FullQuota) {
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	have, known := c.by[name]
	if !known {
		have.first = now
	}
	if now.Sub(have.first) > crowdedFor {
		delete(c.by, name) // the user is told, and then it begins anew
		return false
	}
	if c.by == nil {
		c.by = map[string]crowd{}
	}
	c.by[name] = crowd{first: have.first, last: now, why: err.Error()}
	return true
}

// of returns how a placeholder was refused, if that is not over.
func (c *Crowded) of(name string) (crowd, bool) {
	if c == nil {
		return crowd{}, false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	have, is := c.by[name]
	return have, is
}

// first says what is to be done before a placeholder is sent that a quota has refused; After if it is to be sent now.
func (c *Crowded) first(ctx context.Context, s Steps, m plans.StepContext, name string) (plans.Observation, error) {
	have, is := c.of(name)
	if !is {
		return plans.Done(), nil
	}
	pods, err := s.EveryPod(ctx, m.To())
	if err != nil {
		return plans.Observation{}, err
	}
	for k := range pods {
		if pod := &pods[k]; kind(pod.Labels) == anAnchor && usable(pod, m.Stamp) {
			return s.remove(m.To(), pod, "since a quota has no room for it and "+name), nil
		}
	}
	left := crowdedPause - s.now().Sub(have.last)
	if left <= 0 {
		return plans.Done(), nil
	}
	wait := plans.Wait(reasons.PlaceNotReady, s.called(m.To(), name)+" is refused, and sent again for a while: "+plans.Line(have.why)).Idly()
	wait.Again = left
	return wait, nil
}
