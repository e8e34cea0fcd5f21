package trials

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A part that writes a kind in a way that is not tried would be met by a rule in the middle of a move.
func TestWhateverAPartWritesIsTried(t *testing.T) {
	p := planstest.Three()
	p.Budget = plans.Budget{Source: "web", Destination: "web", SourceExisted: true}
	p.Shared = []plans.SharedVolume{{Claim: "assets", Volume: "pv-assets"}}
	p.Gates = []plans.Gate{{Name: "backup", When: plans.BeforeShrink, Job: &batchv1.JobSpec{}}, {Name: "rejoin", When: plans.AfterGrow, Job: &batchv1.JobSpec{}}}
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "Service"} {
		p.Dependencies = append(p.Dependencies, plans.Dependency{Kind: kind, Name: "web"})
	}
	for _, mode := range []plans.NameMode{plans.Bridge, plans.MCS} {
		p.Names.Mode = mode
		i := check.Inspect(p, nil)
		seen := 0
		for _, l := range []plans.Leg{there(p), back(p), finalize(p)} {
			for _, closing := range []bool{false, true} {
				for _, a := range asks(i, l, closing) {
					seen++
					how := kinds()[native(p, a)]
					if how.empty == nil {
						t.Errorf("%s of a %s is not tried", a.Verb, a.Kind)
					}
					if a.Verb == part.Create && how.made == nil && madeBy()[native(p, a)] == "" {
						t.Errorf("nothing tries to create a %s", a.Kind)
					}
				}
			}
		}
		if seen < 40 {
			t.Errorf("only %d writes", seen)
		}
	}
}

func policy(name, expression, operation, resource string, conditions ...admissionv1.MatchCondition) []client.Object {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.MatchConditions = conditions
	p.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.OperationType(operation)},
		Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}}}
	p.Spec.Validations = []admissionv1.Validation{{Expression: expression}}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.PolicyName, b.Spec.ValidationActions = name, []admissionv1.ValidationAction{admissionv1.Deny}
	b.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "mall"}}}
	return []client.Object{p, b}
}

// What does not exist yet is judged by the rules that will be asked: one that denies whatever it matches is a refusal, of any
// other it is said that it will be asked.
func TestRulesAboutWhatDoesNotExistYetAreRead(t *testing.T) {
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gate"}}
	hook.Webhooks = []admissionv1.ValidatingWebhook{{Name: "gate.example.com", Rules: []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"*"}},
	}}}}
	for name, c := range map[string]struct {
		rules []client.Object
		want  string
		level check.Level
	}{
		"none":                             {nil, "", ""},
		"slices may not be deleted":        {policy("keep", "false", "DELETE", "endpointslices"), "ValidatingAdmissionPolicy keep denies every DELETE", ""},
		"claims may not be deleted":        {policy("keep", "false", "DELETE", "persistentvolumeclaims"), "ValidatingAdmissionPolicy keep denies every DELETE", ""},
		"the set may not be changed there": {policy("keep", " false ", "UPDATE", "statefulsets"), "ValidatingAdmissionPolicy keep denies every UPDATE", ""},
		"some claims may not":              {policy("keep", "oldObject.metadata.name != 'a'", "DELETE", "persistentvolumeclaims"), "ValidatingAdmissionPolicy keep will be asked", check.Warn},
		"of some users":                    {policy("keep", "false", "DELETE", "persistentvolumeclaims", admissionv1.MatchCondition{Name: "a", Expression: "true"}), "ValidatingAdmissionPolicy keep will be asked", check.Warn},
		"a webhook":                        {[]client.Object{hook}, "webhook gate.example.com will be asked", check.Warn},
		"another kind":                     {policy("keep", "false", "DELETE", "pods"), "", ""},
		"one of its own":                   {policy("stsmigrate-orchestrator", "false", "DELETE", "persistentvolumeclaims"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := atRest(t, true)
			for _, o := range c.rules {
				if err := i.On[plans.Destination].Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
			}
			ruled(t, i, rule{})
			var found []check.Finding
			for _, run := range []func(context.Context, check.Inspection) ([]check.Finding, error){WritesAccepted, ReturnsAccepted, EndsAccepted} {
				one, err := run(t.Context(), i)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, one...)
			}
			if said := check.Words(found); (c.want == "") != (len(found) == 0) || !strings.Contains(said, c.want) || c.want != "" && found[0].Level != c.level {
				t.Errorf("%d findings, expected %q: %s", len(found), c.want, said)
			}
		})
	}
}

// An object that somebody else has put in the way of the plan is none of its own: its deletion is not even tried.
func TestTheDeletionOfForeignObjectsIsNotTried(t *testing.T) {
	i := atRest(t, true)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "data-web-0", UID: "theirs"}}
	if err := i.On[plans.Destination].Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	for side, on := range i.On {
		i.On[side] = interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if o.GetNamespace() == "mall" {
					t.Errorf("the deletion of %T %s is tried", o, o.GetName())
				}
				return c.Delete(ctx, o, opts...)
			},
		})
	}
	ruled(t, i, rule{})
	if _, err := all(t.Context(), i); err != nil {
		t.Fatal(err)
	}
}

// What the user may not do is found by the check permissions, and a webhook that hears no dry run decides nothing.
func TestWhatCannotBeTriedIsNoRefusal(t *testing.T) {
	of := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no right":        {apierrors.NewForbidden(of, "data-web-0", errors.New(`User "anna" cannot delete resource "persistentvolumeclaims" in API group "" in the namespace "shop"`)), ""},
		"changed since":   {apierrors.NewConflict(of, "data-web-0", errors.New("changed")), ""},
		"an unknown kind": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ServiceExport"}}, ""},
		"a deaf webhook":  {apierrors.NewBadRequest("admission webhook \"a.b\" does not support dry run"), "WARN delete of PersistentVolumeClaims on the source"},
		"a dead webhook":  {apierrors.NewInternalError(errors.New("failed calling webhook")), " PersistentVolumeClaim shop/data-web-2"},
	} {
		t.Run(name, func(t *testing.T) {
			i := atRest(t, true)
			ruled(t, i, rule{})
			for side, on := range i.On {
				i.On[side] = interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{
					Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.err },
				})
			}
			found, err := WritesAccepted(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, f := range found {
				said += string(f.Level) + " " + f.Object
			}
			if (c.want == "") != (said == "") || !strings.HasPrefix(said, c.want) {
				t.Errorf("%q, expected %q", said, c.want)
			}
		})
	}
}

// A wave asks of each of its own claims, however alike, and of no others.
func TestEachClaimOfAWaveIsTried(t *testing.T) {
	for wave, want := range map[plans.Slice][]string{
		{Start: 1, Replicas: 1}: {"shop/data-web-1"},
		{Start: 1, Replicas: 2}: {"shop/data-web-1", "shop/data-web-2"},
	} {
		i := atRest(t, true)
		i.Midway, i.Taken, i.Ordinals = true, true, wave
		var lock sync.Mutex
		var asked []string
		for side, on := range i.On {
			i.On[side] = interceptor.NewClient(on.(client.WithWatch), interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					lock.Lock()
					defer lock.Unlock()
					asked = append(asked, o.GetNamespace()+"/"+o.GetName())
					return nil
				},
			})
		}
		if _, err := WritesAccepted(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(asked); !slices.Equal(asked, want) {
			t.Errorf("%v: %q, expected %q", wave, asked, want)
		}
	}
}
