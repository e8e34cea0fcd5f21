package simulation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/deploy"
)

// account is the account of the engines of this world, unless a process has a user of its own.
const account = "system:serviceaccount:stsmigrate:orchestrator"

// shipped returns the policies that deploy/ installs in a cluster that has slices too. Every write of an engine to a
// volume or a set must pass them: whatever a process does after whatever crash, the policies must let it continue.
var shipped = sync.OnceValue(func() []policy {
	values, err := deploy.Values("policies", "slicecontroller")
	must(err)
	printed, err := deploy.Render("stsmigrate", "", values)
	must(err)
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType),
		cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)), cel.Variable("params", cel.DynType),
		cel.Variable("authorizer", library.AuthorizerType))
	must(err)
	var out []policy
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(printed), 4096)
	for {
		var p admissionv1.ValidatingAdmissionPolicy
		if err := docs.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if must(err); p.Kind == "ValidatingAdmissionPolicy" {
			out = append(out, compiled(env, &p))
		}
	}
})

// policy is a ValidatingAdmissionPolicy with its expressions compiled.
type policy struct {
	name string
	// operations are those that it judges, by resource or resource/subresource.
	operations map[string][]admissionv1.OperationType
	// labels are the keys that an object must have for the policy to apply to it.
	labels     []string
	conditions []cel.Program
	variables  []variable
	rules      []rule
}

type variable struct {
	name  string
	value cel.Program
}

type rule struct{ holds, message cel.Program }

func compiled(env *cel.Env, p *admissionv1.ValidatingAdmissionPolicy) policy {
	program := func(expression string) cel.Program {
		ast, issues := env.Compile(expression)
		must(issues.Err())
		out, err := env.Program(ast)
		must(err)
		return out
	}
	out := policy{name: p.Name, operations: map[string][]admissionv1.OperationType{}}
	for _, r := range p.Spec.MatchConstraints.ResourceRules {
		for _, of := range r.Resources {
			out.operations[of] = append(out.operations[of], r.Operations...)
		}
	}
	if labeled := p.Spec.MatchConstraints.ObjectSelector; labeled != nil {
		for _, r := range labeled.MatchExpressions {
			out.labels = append(out.labels, r.Key)
		}
	}
	for _, c := range p.Spec.MatchConditions {
		out.conditions = append(out.conditions, program(c.Expression))
	}
	for _, v := range p.Spec.Variables {
		out.variables = append(out.variables, variable{v.Name, program(v.Expression)})
	}
	for _, v := range p.Spec.Validations {
		out.rules = append(out.rules, rule{program(v.Expression), program(v.MessageExpression)})
	}
	return out
}

// connKey is the context key whose value identifies the sender of a request.
type connKey struct{}

// by returns a context whose requests are sent by an engine.
func (c *conn) by(ctx context.Context) context.Context { return context.WithValue(ctx, connKey{}, c) }

// Authorize implements authorizer.UnconditionalAuthorizer. It decides on the policies' checks of the rights
// of the engines' account.
func (c *conn) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if c.allowed(a.GetVerb(), a.GetResource(), a.GetNamespace(), a.GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// admit returns an error if a policy refuses an operation on a volume or a set. Policies apply to those who carry plans
// out alone: the tests let other writers do anything.
func admit(ctx context.Context, operation admissionv1.OperationType, before, after client.Object) error {
	c, asked := ctx.Value(connKey{}).(*conn)
	one := cmp.Or(after, before)
	of := map[string]string{"PersistentVolume": "persistentvolumes", "StatefulSet": "statefulsets"}[kindOf(one)]
	if of == "" || !asked {
		return nil
	}
	who := cmp.Or(c.r.user, account)
	input := asks(who, operation, one, document(before), document(after))
	input["params"], input["authorizer"] = document(c.r.w.agreed[c.name]), library.NewAuthorizerVal(&user.DefaultInfo{Name: who}, c)
	why := refusal(of, operation, one, input)
	if why == "" {
		return nil
	}
	refused := apierrors.NewForbidden(resource(keyOf(one)), one.GetName(), errors.New("ValidatingAdmissionPolicy "+why))
	refused.ErrStatus.Reason, refused.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity // where a policy names no reason
	return refused
}

// asks returns what the expressions of a policy see of a request of a user.
func asks(who string, operation admissionv1.OperationType, about client.Object, before, after any) map[string]any {
	return map[string]any{
		"object": after, "oldObject": before, "variables": map[string]any{},
		"request": map[string]any{
			"operation": string(operation), "name": about.GetName(), "kind": map[string]any{"kind": keyOf(about).kind},
			"userInfo": map[string]any{"username": who},
		},
	}
}

// refusal returns the name of the first policy that refuses a request, and its reason, or "".
func refusal(of string, operation admissionv1.OperationType, about client.Object, input map[string]any) string {
	for _, p := range shipped() {
		if why := p.refuses(of, operation, about, input); why != "" {
			return p.name + ": " + why
		}
	}
	return ""
}

// refuses returns the reason why the policy refuses the operation, or "". It replaces the variables of the input by the
// policy's own.
func (p policy) refuses(of string, operation admissionv1.OperationType, about client.Object, input map[string]any) string {
	eval := func(x cel.Program) any {
		out, _, err := x.Eval(input)
		must(err)
		return out.Value()
	}
	fails := func(x cel.Program) bool { return eval(x) != true }
	unlabeled := slices.ContainsFunc(p.labels, func(key string) bool { _, has := about.GetLabels()[key]; return !has })
	if unlabeled || !slices.Contains(p.operations[of], operation) || slices.ContainsFunc(p.conditions, fails) {
		return ""
	}
	variables := map[string]any{}
	input["variables"] = variables
	for _, v := range p.variables {
		variables[v.name] = eval(v.value)
	}
	for _, r := range p.rules {
		if fails(r.holds) {
			return fmt.Sprint(eval(r.message))
		}
	}
	return ""
}

func document(o client.Object) any {
	if o == nil {
		return nil
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	must(err)
	return out
}
