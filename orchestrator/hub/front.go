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
	"k8s.io/apimachinery/pkg/types"
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
	before.Source, before.Destination = p.Source.String(), p.Destination.String()
	return before.in(state, message, map[string]bool{
		"Ready": j.Outcome != "", "Stalled": state == "Held" || overdue,
		"Reconciling": !overdue && slices.Contains([]string{"Moving", "Returning", "Finalizing"}, state),
	}, now)
}

// in gives the status in another state.
func (before frontStatus) in(state, message string, is map[string]bool, now metav1.Time) frontStatus {
	out := before
	out.State, out.Message, out.Conditions = state, orchestrator.Brief(message), slices.Clone(before.Conditions)
	say := func(kind string, is bool) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: state, Message: orchestrator.Brief(message), LastTransitionTime: now}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, c)
	}
	say("Ready", is["Ready"])
	// These two are there only while they are True.
	for _, kind := range []string{"Stalled", "Reconciling"} {
		if meta.RemoveStatusCondition(&out.Conditions, kind); is[kind] {
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
	if holder != "" && holder != h.Holder {
		h.lock.Lock()
		delete(h.shown, p.Name) // that one shows it, and it is not known what
		h.lock.Unlock()
		return nil
	}
	h.lock.Lock()
	uid := h.plans[p.Name].uid
	h.lock.Unlock()
	return h.present(ctx, p.Name, uid, func(before frontStatus) frontStatus {
		return shows(before, p, j, orchestrator.State(p, j, holder), metav1.NewTime(h.Now()))
	})
}

// showUnread shows that nothing goes on with a plan, because it cannot be read.
func (h *Hub) showUnread(ctx context.Context, name, why string) error {
	if !h.Front {
		return nil
	}
	uid, err := orchestrator.NewStore(h.Cached, h.Namespace, name).UID(ctx)
	if err != nil {
		return err
	}
	return h.present(ctx, name, uid, func(before frontStatus) frontStatus {
		return before.in(unreadable, why, map[string]bool{"Stalled": true}, metav1.NewTime(h.Now()))
	})
}

// present writes what is to be shown of a plan. uid is that of the ConfigMap with the plan.
func (h *Hub) present(ctx context.Context, name string, uid types.UID, shows func(before frontStatus) frontStatus) error {
	h.lock.Lock()
	before, known := h.shown[name]
	h.lock.Unlock()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(frontKind())
	o.SetNamespace(h.Namespace)
	o.SetName(name)
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
	next := shows(before)
	if known && equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	o.SetLabels(map[string]string{plans.PlanLabel: name})
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "stsmigrate-" + name, UID: uid}}) // it goes with the plan
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
	h.shown[name] = next
	return nil
}
