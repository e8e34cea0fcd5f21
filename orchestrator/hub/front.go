package hub

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan is a ConfigMap, which has no conditions: tools that wait for objects (kstatus: Flux, Helm,
// `kubectl wait`) take it for ready the moment it is there. Where the kind StatefulSetMigration is
// installed, every plan has one of its name, made of the journal whenever its state changes. Nothing
// is decided by it: to change or delete it does nothing.

func frontKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "stsmigrate.dev", Version: "v1alpha1", Kind: "StatefulSetMigration"}
}

// hasFront says whether the kind is installed.
func hasFront(m meta.RESTMapper) bool {
	_, err := m.RESTMapping(frontKind().GroupKind(), frontKind().Version)
	return err == nil
}

// frontStatus is what is shown of a plan.
type frontStatus struct {
	State       string             `json:"state"`
	Message     string             `json:"message,omitempty"`
	Source      string             `json:"source"`
	Destination string             `json:"destination"`
	Conditions  []metav1.Condition `json:"conditions"`
}

// shows brings what is shown of a plan up to date.
func shows(before frontStatus, p *plans.Plan, j *plans.Journal, state string, now metav1.Time) frontStatus {
	message, overdue := j.Held, j.Overdue != ""
	if overdue {
		message = "overdue: " + j.Overdue
	}
	out := frontStatus{State: state, Message: orchestrator.Brief(message), Source: p.Source.String(), Destination: p.Destination.String(), Conditions: slices.Clone(before.Conditions)}
	say := func(kind string, is bool) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: state, Message: orchestrator.Brief(message), LastTransitionTime: now}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, c)
	}
	say("Ready", j.Outcome != "")
	// These two are there only while they are True.
	for kind, is := range map[string]bool{"Stalled": state == "Held" || overdue, "Reconciling": !overdue && slices.Contains([]string{"Moving", "Returning", "Finalizing"}, state)} {
		if meta.RemoveStatusCondition(&out.Conditions, kind); is {
			if was := meta.FindStatusCondition(before.Conditions, kind); was != nil {
				out.Conditions = append(out.Conditions, *was)
			}
			say(kind, true)
		}
	}
	slices.SortFunc(out.Conditions, func(a, b metav1.Condition) int { return len(a.Type) - len(b.Type) })
	return out
}

// show writes it, if this process has the plan under way or nobody has, and there is news.
func (h *Hub) show(ctx context.Context, p *plans.Plan, j *plans.Journal, holder string) error {
	if !h.Front || !j.Detached {
		return nil
	}
	h.lock.Lock()
	if holder != "" && holder != h.Holder {
		delete(h.shown, p.Name) // that one shows it, and it is not known what
		h.lock.Unlock()
		return nil
	}
	before, known := h.shown[p.Name]
	uid := h.plans[p.Name].uid
	h.lock.Unlock()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(frontKind())
	o.SetNamespace(h.Namespace)
	o.SetName(p.Name)
	if !known { // by another process
		have := o.DeepCopy()
		if err := h.Live.Get(ctx, client.ObjectKeyFromObject(o), have); client.IgnoreNotFound(err) != nil {
			return err
		}
		status, _, _ := unstructured.NestedMap(have.Object, "status")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &before); err != nil {
			before = frontStatus{} // somebody else has written something else
		}
	}
	next := shows(before, p, j, orchestrator.State(p, j, holder), metav1.NewTime(h.Now()))
	if known && equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	o.SetLabels(map[string]string{plans.PlanLabel: p.Name})
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "stsmigrate-" + p.Name, UID: uid}}) // it goes with the plan
	if err := h.Live.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("stsmigrate"), client.ForceOwnership); err != nil {
		return err
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return err
	}
	o.Object["status"] = status
	if err := h.Live.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("stsmigrate"), client.ForceOwnership); err != nil {
		return err
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.shown[p.Name] = next
	return nil
}
