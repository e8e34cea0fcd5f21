package preflight

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAPlanIsForTheObjectsThatWereThere(t *testing.T) {
	checktest.Estate{}.Finds(t, PlanCurrent)
	i := checktest.Estate{}.Inspected(t)
	i.Now.Set = i.Now.Set.DeepCopy()
	i.Now.Set.UID = "another"
	found, err := PlanCurrent(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...changed since the plan was made: the source set was deleted and recreated")
}

// Whoever has approved a plan is told what has changed since, and by whom, without a password in it.
func TestWhatHasChangedSinceThePlanIsSaid(t *testing.T) {
	kept := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u", Controller: ptr.To(true)}},
	}}
	i := checktest.Estate{Spec: "{containers: [{name: web, image: 'web:1', env: [{name: PASSWORD, value: old}]}]}", Here: []client.Object{kept}}.Inspected(t)
	i.Now.Set.Status.UpdateRevision = "web-1"
	seen, err := plans.Fingerprints(i.Now.Set, nil, i.Now.SourceBudget)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": i.Now.Set.Spec.Template}})
	if err != nil {
		t.Fatal(err)
	}
	kept.Data.Raw = raw
	if err := i.On[plans.Source].Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	i.Plan.Seen, i.Now.Set = seen, i.Now.Set.DeepCopy()
	set := i.Now.Set
	set.Spec.Replicas, set.Spec.MinReadySeconds = ptr.To(*set.Spec.Replicas+2), 7
	web := &set.Spec.Template.Spec.Containers[0]
	web.Image, web.Env[0].Value, web.Args = "web:2", "new", []string{"--fast"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Image: "agent:1"}, *web} // in front of it
	set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-set", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{}}}`)}}
	found, err := PlanCurrent(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...the spec of the source set (minReadySeconds (none) -> 7, replicas 1 -> 3, template.spec.containers[agent].image (none) -> agent:1, template.spec.containers[web].image web:1 -> web:2)"+
		", template.spec.containers[agent].name (none) -> agent, template.spec.containers[web].args[0] (none) -> --fast, template.spec.containers[web].env[PASSWORD].value (its value is not shown), the template was last written by kubectl-set (Update)")
	if text := found[0].String(); strings.Count(text, "web:2") != 1 {
		t.Errorf("it is said twice: %s", text)
	}

	i.Plan.Seen.SourceFields, i.Plan.Seen.SourceRevision = nil, "" // as an earlier release has written it
	if found, err = PlanCurrent(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	checktest.ExpectFindings(t, found, "FAIL ...changed since the plan was made: the spec of the source set, expected")
}

func TestASetOfAnotherPlanIsNotMoved(t *testing.T) {
	for plan, want := range map[string]string{"": "", "web-abc": "FAIL ...it is being moved by plan web-abc...its record is gone...rebuild the record with `stsmigrate recover FILE`", "web-xyz": "FAIL ...it is being moved by plan web-xyz...finish that plan"} {
		for _, taken := range []bool{false, true} {
			i := checktest.Estate{}.Inspected(t)
			i.Taken, i.Now.Existing = taken, i.Now.Set.DeepCopy()
			if plan != "" {
				plans.Stamp{Plan: plan, Epoch: 1, Seq: 2}.Put(i.Now.Existing)
			}
			found, err := NotMigrating(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" || taken && plan == i.Plan.ID {
				checktest.ExpectFindings(t, found)
				continue
			}
			checktest.ExpectFindings(t, found, want)
		}
	}
}

// A move that is under way is one finding, and the others are not asked: they would only stumble over it, and their remedies
// are about what is in the way of a move.
func TestAMoveThatIsUnderWayIsOneFinding(t *testing.T) {
	for plan, remedy := range map[string]string{"web-xyz": "`stsmigrate finalize`", "web-abc": "`stsmigrate recover FILE`"} {
		estate := estateOfTwoSets()
		for _, o := range append(estate.Here, estate.There...) {
			plans.Stamp{Plan: plan, Epoch: 1, Seq: 2}.Put(o)
		}
		i := estate.Inspected(t)
		allowAll(i.On)
		r, err := Check(t.Context(), i.Plan, i.On, nil, i.Caller)
		if err != nil {
			t.Fatal(err)
		}
		found := r.Failed()
		if len(found) != 1 || found[0].Check != "not-migrating" || !strings.Contains(found[0].Remedy, remedy) || r.NotRun != len(lookingChecks())-1 {
			t.Errorf("%s: %d not run, and %v", plan, r.NotRun, found)
		}
		for _, side := range []string{"shop/web", "mall/web"} {
			if len(found) > 0 && !strings.Contains(found[0].Object, side) {
				t.Errorf("%s is not named: %s", side, found[0].Object)
			}
		}
	}
}
