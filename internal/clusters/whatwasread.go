package clusters

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// This file holds what a ReadCache tells of the objects that a look has read, beyond the objects themselves.

// LongestGrace returns the longest termination grace period of the pods and sets that were read.
func (g *ReadCache) LongestGrace() time.Duration {
	var longest int64
	for _, o := range g.Objects {
		var asked []*int64
		switch o := o.(type) {
		case *corev1.Pod:
			asked = []*int64{o.Spec.TerminationGracePeriodSeconds, o.DeletionGracePeriodSeconds}
		case *appsv1.StatefulSet:
			asked = []*int64{o.Spec.Template.Spec.TerminationGracePeriodSeconds}
		}
		for _, seconds := range asked {
			if seconds != nil {
				longest = max(longest, *seconds)
			}
		}
	}
	return time.Duration(longest) * time.Second
}

// OtherWriters names the field managers, other than this program, of the objects that were read and carry the stamp of a
// plan.
func (g *ReadCache) OtherWriters(plan string) string {
	var out []string
	for t, o := range g.Objects {
		if o == nil {
			continue
		}
		if stamp, ok := plans.Stamped(o); !ok || stamp.Plan != plan {
			continue
		}
		for _, e := range o.GetManagedFields() {
			if e.Subresource == "" && e.Operation != "" && !ours(e) {
				out = append(out, fmt.Sprintf("%s (%s %s)", e.Manager, t.Kind, t.Name))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// ours reports whether a field manager is one of our programs.
func ours(e metav1.ManagedFieldsEntry) bool { return strings.Contains(e.Manager, "stsmigrate") }
