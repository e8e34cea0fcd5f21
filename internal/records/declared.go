package records

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/api/v1alpha1"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// DeclarationKind returns the kind of the object that requests a migration from an orchestrator.
func DeclarationKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(plans.APIVersion, plans.DeclarationKind)
}

// Declared is a StatefulSetMigration as it was read. Readers use Spec and Status. Object has everything that the API
// server sent, for writes: what this program does not know stays.
type Declared struct {
	Object *unstructured.Unstructured
	// Spec is nil if it cannot be read, and Wrong is the reason.
	Spec  *plans.Declaration
	Wrong error
	// Status lacks the fields of which another writer has made something else.
	Status v1alpha1.StatefulSetMigrationStatus
}

// ErrNoKind reports that a cluster has no kind StatefulSetMigration.
type ErrNoKind struct{ namespace string }

func (e ErrNoKind) Error() string {
	return fmt.Sprintf("the cluster of namespace %s has no kind StatefulSetMigration: install the orchestrator there (stsmigrate install orchestrator --apply)", e.namespace)
}

// NewDeclared returns the object that requests a plan, without content. It is in the namespace of the orchestrator, or in
// that of which the name of the plan tells.
func NewDeclared(home, plan string) *unstructured.Unstructured {
	namespace, name := plans.RequestedIn(plan)
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(DeclarationKind())
	o.SetNamespace(cmp.Or(namespace, home))
	o.SetName(name)
	return o
}

// PlanOf returns the name of the plan that an object requests from an orchestrator whose namespace is home.
func PlanOf(home string, o client.Object) string {
	if o.GetNamespace() == home {
		return o.GetName()
	}
	return plans.NameIn(o.GetNamespace(), o.GetName())
}

// ReadDeclared reads the StatefulSetMigration of a plan; it returns nil if there is none.
func ReadDeclared(ctx context.Context, home client.Reader, namespace, plan string) (*Declared, error) {
	o := NewDeclared(namespace, plan)
	err := home.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case meta.IsNoMatchError(err):
		return nil, ErrNoKind{namespace}
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading StatefulSetMigration %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return DeclaredIn(o), nil
}

// ListDeclared reads the StatefulSetMigrations that the options choose.
func ListDeclared(ctx context.Context, home client.Reader, which ...client.ListOption) ([]*Declared, error) {
	var list unstructured.UnstructuredList
	kind := DeclarationKind()
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := home.List(ctx, &list, which...); err != nil {
		return nil, err
	}
	out := make([]*Declared, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, DeclaredIn(&list.Items[i]))
	}
	return out, nil
}

// DeclaredIn reads what an object declares, and what is reported in it. One object that cannot be read must not keep
// others from being read, so it is no error.
func DeclaredIn(o *unstructured.Unstructured) *Declared {
	d := &Declared{Object: o, Status: StatusIn(o)}
	raw, err := json.Marshal(o.Object["spec"])
	if err == nil {
		d.Spec, err = plans.DecodeDeclaration(raw)
	}
	d.Wrong = err
	return d
}

// StatusIn returns what is reported in an object.
func StatusIn(o *unstructured.Unstructured) v1alpha1.StatefulSetMigrationStatus {
	read := runtime.DefaultUnstructuredConverter.FromUnstructured
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	var out v1alpha1.StatefulSetMigrationStatus
	if read(status, &out) == nil {
		return out
	}
	for field, value := range status {
		if read(map[string]any{field: value}, &v1alpha1.StatefulSetMigrationStatus{}) != nil {
			delete(status, field)
		}
	}
	out = v1alpha1.StatefulSetMigrationStatus{}
	if read(status, &out) != nil {
		return v1alpha1.StatefulSetMigrationStatus{}
	}
	return out
}

// RequesterAnnotation returns the annotation in which admission writes down who has set a request.
func RequesterAnnotation(field string) string {
	if field == plans.ApprovalField {
		field = "approved-hash"
	}
	return "stsmigrate.dev/" + field + "-by"
}

// Requester returns who has set a request. If admission writes that down, it is the user as the API server names
// them. Otherwise it is the program that the client has claimed to be.
func (d *Declared) Requester(field string, written bool) string {
	if user := d.Object.GetAnnotations()[RequesterAnnotation(field)]; written && user != "" {
		return user
	}
	by := plans.DeclarationKind + " " + d.Object.GetName()
	if program := plans.Manager(d.Object, "spec", field); program != "" {
		by += " (claimed: " + program + ")"
	}
	return by
}

// Over reports whether the plan of the object has ended, by its status.
func (d *Declared) Over() bool {
	return d.Status.State.Ended()
}

// UnderWay is the finalizer of the object and of the record of a plan that an orchestrator has under way. Users can
// delete both, and both disappear when the plan has ended.
const UnderWay = "stsmigrate.dev/under-way"

// Begun reports whether the plan of the object (nil if it is not known) was begun, even if its journal is lost: its record
// has the finalizer that precedes the first write, or it has ended.
func (d *Declared) Begun(p *plans.Plan, record *corev1.ConfigMap) bool {
	if d == nil {
		return slices.Contains(record.Finalizers, UnderWay)
	}
	return slices.Contains(record.Finalizers, UnderWay) || d.Over() && d.Spec != nil && d.Spec.ApprovedHash == p.Hash
}

// Obstacle returns what the orchestrator says about a plan that no process has begun; "" of any other.
func (d *Declared) Obstacle(j *journal.Journal) string {
	if j.Epoch > 0 {
		return ""
	}
	return d.Status.Message
}

// Declare changes what is declared of a plan. If nothing is declared yet, it first declares the approved
// plan, and then applies the change. It tries again if another writer was faster.
func Declare(ctx context.Context, home client.Client, namespace string, p *plans.Plan, change func(*plans.Declaration) error) error {
	for n := new(Attempts); ; {
		err := declare(ctx, home, namespace, p, change)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || !n.Again(ctx) {
			return err
		}
	}
}

func declare(ctx context.Context, home client.Client, namespace string, p *plans.Plan, change func(*plans.Declaration) error) error {
	have, err := ReadDeclared(ctx, home, namespace, p.Name)
	if err != nil {
		return err
	}
	d := p.Declared()
	switch {
	case have == nil:
	case have.Wrong != nil:
		return fmt.Errorf("StatefulSetMigration %s/%s: %w", namespace, p.Name, have.Wrong)
	case have.Spec.ApprovedHash != "" && have.Spec.ApprovedHash != p.Hash && have.Over():
		if err := writes.DeleteOwn(ctx, home, have.Object); client.IgnoreNotFound(err) != nil {
			return err
		}
		return declare(ctx, home, namespace, p, change)
	case have.Spec.ApprovedHash != "" && have.Spec.ApprovedHash != p.Hash:
		return fmt.Errorf("StatefulSetMigration %s/%s approves a plan with the hash %s, and plan %s has %s: delete the one that is not needed", namespace, p.Name, have.Spec.ApprovedHash, p.ID, p.Hash)
	case p.Differs(have.Spec) != "":
		return fmt.Errorf("StatefulSetMigration %s/%s does not match plan %s: its spec.%s differs; have the plan made from this object, or delete the object", namespace, p.Name, p.ID, p.Differs(have.Spec))
	default:
		d = *have.Spec
		d.ApprovedHash = p.Hash
	}
	if err := change(&d); err != nil {
		return err
	}
	spec, err := specOf(d)
	if err != nil {
		return err
	}
	if have == nil {
		o := NewDeclared(namespace, p.Name)
		o.SetLabels(map[string]string{plans.PlanLabel: p.Name})
		o.Object["spec"] = spec
		return home.Create(ctx, o)
	}
	next := have.Object.DeepCopy()
	next.Object["spec"] = spec
	return writes.Change(ctx, home, have.Object, next)
}

func specOf(d plans.Declaration) (spec map[string]any, err error) {
	raw, err := json.Marshal(d)
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	return spec, err
}

// Request changes what an object requests, for a user who may not read the record of its plan. What the plan cannot do is
// refused by the API server, or by the orchestrator in the condition Accepted. It tries again if another writer was
// faster, and changes no object that was recreated meanwhile.
func Request(ctx context.Context, home client.Client, d *Declared, change func(*plans.Declaration) error) error {
	at := d.Object
	for n := new(Attempts); ; {
		if d.Wrong != nil {
			return fmt.Errorf("StatefulSetMigration %s: %w", client.ObjectKeyFromObject(at), d.Wrong)
		}
		next := *d.Spec
		if err := change(&next); err != nil {
			return err
		}
		if err := next.Validate(); err != nil {
			return err
		}
		spec, err := specOf(next)
		if err != nil {
			return err
		}
		o := d.Object.DeepCopy()
		o.Object["spec"] = spec
		if err = writes.Change(ctx, home, d.Object, o); !apierrors.IsConflict(err) || !n.Again(ctx) {
			return err
		}
		now := NewDeclared(at.GetNamespace(), at.GetName())
		if err := home.Get(ctx, client.ObjectKeyFromObject(at), now); err != nil {
			return err
		}
		if now.GetUID() != at.GetUID() {
			return fmt.Errorf("StatefulSetMigration %s was deleted and created again meanwhile, and nothing was written: look at it first", client.ObjectKeyFromObject(at))
		}
		d = DeclaredIn(now)
	}
}

// Undeclare deletes the StatefulSetMigration and the record of a plan that has ended, except its
// journal. It returns an error while the record is needed.
func Undeclare(ctx context.Context, home client.Client, namespace string, p *plans.Plan) error {
	store := NewStore(home, namespace, p.Name)
	if why := store.Needed(ctx, p); why != nil {
		return fmt.Errorf("the record of plan %s/%s, %w, must stay", namespace, p.Name, why)
	}
	d, err := ReadDeclared(ctx, home, namespace, p.Name)
	if err == nil && d != nil {
		uid := d.Object.GetUID()
		err = client.IgnoreNotFound(home.Delete(ctx, d.Object, client.Preconditions{UID: &uid}))
	}
	if err != nil {
		return err
	}
	return store.forget(ctx, p, false)
}

// Declared reads the StatefulSetMigration of the plan; nil means that there is none.
func (s *Store) Declared(ctx context.Context) (*Declared, error) {
	return ReadDeclared(ctx, s.home, s.name.Namespace, s.name.Name)
}
