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
	corev1 "k8s.io/api/core/v1"
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

// account is the account of the engines of this world.
const account = "system:serviceaccount:stsmigrate:orchestrator"

// shipped returns the policies that deploy/ installs. Every write of an engine to a volume must pass them:
// whatever a process does after whatever crash, the policies must let it continue.
var shipped = sync.OnceValue(func() []policy {
	values, err := deploy.Values("policies")
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
	name       string
	operations []admissionv1.OperationType
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
	out := policy{name: p.Name}
	for _, r := range p.Spec.MatchConstraints.ResourceRules {
		if slices.Contains(r.Resources, "persistentvolumes") {
			out.operations = append(out.operations, r.Operations...)
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

// admit returns an error if a policy refuses an operation on a volume. Policies apply to the orchestrator
// alone: the tests let other writers do anything.
func admit(ctx context.Context, operation admissionv1.OperationType, before, after client.Object) error {
	c, asked := ctx.Value(connKey{}).(*conn)
	one := cmp.Or(after, before)
	if _, ok := one.(*corev1.PersistentVolume); !ok || !asked {
		return nil
	}
	variables := map[string]any{}
	input := map[string]any{
		"object": document(after), "oldObject": document(before), "variables": variables,
		"request": map[string]any{"operation": string(operation), "name": one.GetName(), "userInfo": map[string]any{"username": account}},
		"params":  document(c.r.w.agreed[c.name]), "authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: account}, c),
	}
	for _, p := range shipped() {
		if why := p.refuses(operation, one, input, variables); why != "" {
			refused := apierrors.NewForbidden(resource(keyOf(one)), one.GetName(), fmt.Errorf("ValidatingAdmissionPolicy %s: %s", p.name, why))
			refused.ErrStatus.Reason, refused.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity // where a policy names no reason
			return refused
		}
	}
	return nil
}

// refuses returns the reason why the policy refuses the operation, or "". It replaces variables by the
// policy's own.
func (p policy) refuses(operation admissionv1.OperationType, about client.Object, input, variables map[string]any) string {
	eval := func(x cel.Program) any {
		out, _, err := x.Eval(input)
		must(err)
		return out.Value()
	}
	fails := func(x cel.Program) bool { return eval(x) != true }
	unlabeled := slices.ContainsFunc(p.labels, func(key string) bool { _, has := about.GetLabels()[key]; return !has })
	if unlabeled || !slices.Contains(p.operations, operation) || slices.ContainsFunc(p.conditions, fails) {
		return ""
	}
	clear(variables)
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
