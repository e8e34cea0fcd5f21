package move_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// Every write that the binary sends is in the list of the plan: also the record of the plan, its Lease and what bridges
// the names, which the simulation does not write.
func TestThePlanListsWhatTheBinaryWrites(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		f := s.covered()
		s.planned()
		raw, err := os.ReadFile(s.planFile)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plans.DecodePlan(raw)
		if err != nil {
			t.Fatal(err)
		}
		run(t, s.applyArgs()...).expect(t, done)
		run(t, s.args("finalize")...).expect(t, done)
		listed := map[string]bool{}
		for _, leg := range []plans.Leg{p.FirstLeg(), {Direction: plans.Finalize, First: 1}} {
			for _, w := range preview.Writes(p, leg) {
				line := requestOf(s, w)
				listed[line] = true
				switch w.Kind {
				case "Lease": // renewed, taken again by finalize, and released
					listed[requestOf(s, part.Write{Verb: "create", Side: w.Side, Kind: w.Kind, Namespace: w.Namespace})] = true
					listed[strings.Replace(line, "PUT", "DELETE", 1)] = true
				case "EndpointSlice": // kept current
					listed[strings.Replace(requestOf(s, part.Write{Verb: "update", Side: w.Side, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}), "POST", "PUT", 1)] = true
				}
			}
		}
		sent := map[string]bool{}
		for _, line := range f.Sent() {
			sent[asListed(line)] = true
		}
		for line := range sent {
			if !listed[line] {
				t.Errorf("%s is sent, and not listed", line)
			}
		}
		for _, kind := range []string{"configmaps", "leases", "endpointslices"} {
			if !slices.ContainsFunc(f.Sent(), func(line string) bool { return strings.Contains(line, " POST ") && strings.HasSuffix(line, "/"+kind) }) {
				t.Errorf("no %s are created: what is compared?", kind)
			}
		}
	})
}

// resources has the plural of a kind, as requests name it.
var resources = map[string]string{
	"StatefulSet": "statefulsets", "PodDisruptionBudget": "poddisruptionbudgets", "PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims",
	"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "ServiceAccount": "serviceaccounts", "Lease": "leases", "EndpointSlice": "endpointslices",
	"ControllerRevision": "controllerrevisions", "ServiceExport": "serviceexports", "Job": "jobs",
}

// requestOf returns a listed write as a request: without the name where the address of the request has none, and
// where the plan does not know it.
func requestOf(s *migration, w part.Write) string {
	method := map[string]string{"create": "POST", "patch": "PATCH", "update": "PUT", "delete": "DELETE"}[string(w.Verb)]
	on := map[plans.Side]*end{plans.Source: s.source, plans.Destination: s.destination}[w.Side]
	kind, name, namespace := resources[w.Kind], w.Name, w.Namespace
	if method == "POST" || kind == "persistentvolumes" || kind == "controllerrevisions" {
		name = ""
	}
	if kind == "persistentvolumes" {
		namespace = ""
	}
	return fmt.Sprintf("%s %s %s %s %s", on.cluster.Name, method, kind, namespace, name)
}

// asListed returns a request in the form of requestOf.
func asListed(line string) string {
	cluster, rest, _ := strings.Cut(line, " ")
	method, path, _ := strings.Cut(rest, " ")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	parts = parts[map[bool]int{true: 2, false: 3}[parts[0] == "api"]:] // api/v1, or apis/group/version
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	kind, name := parts[0], ""
	if len(parts) > 1 && kind != "persistentvolumes" && kind != "controllerrevisions" {
		name = parts[1]
	}
	return fmt.Sprintf("%s %s %s %s %s", cluster, method, kind, namespace, name)
}

// A dry run of a plan has both API servers check what it would write. It stores nothing.
func TestADryRunOfAPlanAsksBothServers(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		before := s.versions()
		run(t, s.planArgs("--dry-run=server")...).expect(t, done, "Sent as dry runs: ", "refused: 0.")
		same(t, "what is stored", before, s.versions())
		run(t, append(s.applyArgs(), "--dry-run=server")...).expect(t, done, "refused: 0.", "dry run: nothing was written")
		same(t, "what is stored", before, s.versions())
	})
}

// What an admission policy refuses on one side is said before anything is written, with the object and the words of
// the server, and by the exit code.
func TestARefusedDryRunSaysWhatIsRefused(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		s.forbids("no budgets here", admissionv1.Create)
		before := s.versions()
		run(t, s.planArgs("--dry-run=server")...).expect(t, blocked, "REFUSED create PodDisruptionBudget", "no budgets here", "of the writes would be refused; nothing has been written")
		same(t, "what is stored", before, s.versions())
	})
}

// A plan that is stored can be tried wherever it rests: before the next ordinals leave, on the way back, before the
// source is deleted, and after the end. What is stored stays as it is, and the command works afterwards.
func TestADryRunOfAStoredPlanAsksBothServers(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		storesNothing := func(code int, verb string, says ...string) {
			t.Helper()
			before := s.versions()
			run(t, s.args(verb, "--dry-run=server")...).expect(t, code, says...)
			same(t, "what is stored", before, s.versions())
		}
		s.planned()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-0")
		sent := []string{"Sent as dry runs: ", "refused: 0.", "dry run: nothing was written"}
		storesNothing(done, "resume", append(sent, "move of plan web would do this", "1. stop web-0, hand over data-web-0, logs-web-0, start web-0")...)
		storesNothing(done, "abort", append(sent, "abort of plan web would do this", "web-1")...)
		storesNothing(done, "pause", "nothing was stored")
		storesNothing(failed, "finalize", "is not complete")
		storesNothing(failed, "forget", "has not ended")
		run(t, s.args("resume")...).expect(t, done, "moved: 2 ordinals")
		storesNothing(failed, "pause", "is not under way")
		storesNothing(done, "abort", append(sent, "web-0", "web-1")...)
		storesNothing(done, "finalize", append(sent, "delete StatefulSet", "nothing is ever deleted as a dry run")...)
		run(t, s.args("finalize")...).expect(t, done, "finalized")
		storesNothing(done, "forget", "nothing was stored")
		run(t, append(s.args("forget"), "--yes")...).expect(t, done, "the record of plan web is gone")
	})
}

// What the server refuses of a stored plan is said with its object, and the plan stays as it is.
func TestARefusedDryRunOfAStoredPlanSaysWhatIsRefused(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-0")
		s.forbids("no budgets here", admissionv1.Update)
		before := s.versions()
		run(t, s.args("abort", "--dry-run=server")...).expect(t, blocked, "REFUSED patch PodDisruptionBudget", "no budgets here", "of the writes would be refused; nothing has been written")
		same(t, "what is stored", before, s.versions())
	})
}

// forbids has the server of the destination refuse one operation on the budgets in its namespace, and waits until it
// does.
func (s *migration) forbids(why string, operation admissionv1.OperationType) {
	s.t.Helper()
	name := s.destination.namespace
	of := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{operation},
		Rule:       admissionv1.Rule{APIGroups: []string{policyv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"poddisruptionbudgets"}},
	}}
	here := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.destination.namespace}}
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: here, ResourceRules: []admissionv1.NamedRuleWithOperations{of}},
			Validations:      []admissionv1.Validation{{Expression: "false", Message: why}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	} {
		if err := s.destination.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = s.destination.Delete(context.Background(), o) })
	}
	s.eventually("the policy is in force", func(ctx context.Context) bool {
		trial := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.destination.namespace, Name: "trial"}}
		err := s.destination.Create(ctx, trial, client.DryRunAll)
		if operation == admissionv1.Update {
			var have policyv1.PodDisruptionBudgetList
			if err := s.destination.List(ctx, &have, client.InNamespace(s.destination.namespace)); err != nil || len(have.Items) == 0 {
				return false
			}
			err = s.destination.Update(ctx, &have.Items[0], client.DryRunAll)
		}
		return err != nil && strings.Contains(err.Error(), why)
	})
}
