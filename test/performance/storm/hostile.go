package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// The tenant may write ConfigMaps and StatefulSetMigrations in the namespace of the orchestrator, as every
// user who hands plans over must be able to, and nothing else anywhere. Its target is another tenant's set,
// for which the orchestrator has every right and no consent.
const (
	victim = "victim"
	tenant = "tenant"
	// hostile is the prefix of the names of the tenant's plans.
	hostile = "hostile-"
)

// forgery is a plan, a journal and a StatefulSetMigration that no command would write.
type forgery struct {
	plan    func(*plans.Plan)
	journal func(map[string]any)
	// raw changes the text of the plan after its hash was computed.
	raw func(string) string
	// direction is the direction that the tenant requests, or empty for none.
	direction plans.Direction
	// says is the message that the orchestrators must report where no policy rejects its journal, or empty
	// for none.
	says string
}

// forgeries returns the tenant's attempts, by the names of the plans.
func forgeries() map[string]forgery {
	saved := map[string]any{
		"slice":     map[string]any{"start": 0, "replicas": 0},
		"retention": map[string]any{"source": deleting(), "destination": deleting()},
	}
	const consent = "nothing is written without consent"
	return map[string]forgery{
		"asks":              {direction: plans.Move, says: consent},
		"says-it-has-begun": {journal: func(j map[string]any) { j["epoch"] = 1 }, says: consent},
		"says-it-is-half-done": {journal: func(j map[string]any) {
			j["epoch"], j["begun"], j["done"] = 1, 3, 3
		}, direction: plans.Abort, says: consent},
		"says-it-is-a-command's": {journal: func(j map[string]any) {
			j["epoch"], j["begun"], j["done"], j["detached"] = 1, 1, 1, false
		}, direction: plans.Move, says: "carried out by commands"},
		"walks-back": {
			plan:      func(p *plans.Plan) { p.Source, p.Destination = p.Destination, p.Source },
			journal:   func(j map[string]any) { j["epoch"], j["saved"] = 3, saved },
			direction: plans.Abort, says: "the journal does not fit plan",
		},
		"has-arrived": {journal: func(j map[string]any) {
			j["epoch"], j["outcome"], j["done"], j["begun"] = 3, "Moved", 9, 9
		}, direction: plans.Finalize, says: consent},
		"copies": {
			plan:    func(p *plans.Plan) { p.Dependencies = []plans.Dependency{{Kind: "Secret", Name: fixture.Name}} },
			journal: func(j map[string]any) { j["epoch"] = 1 }, direction: plans.Move, says: consent,
		},
		"wishes-as-of-old":  {journal: func(j map[string]any) { j["epoch"], j["wish"] = 1, map[string]any{"direction": "Move"} }, direction: plans.Move, says: "was written by stsmigrate 0.1"},
		"takes-another-set": {plan: func(p *plans.Plan) { p.Destination.Name = "other" }},
		"has-no-gate":       {plan: func(p *plans.Plan) { p.Gates = []plans.Gate{{Name: "x", When: plans.BeforeShrink}} }, direction: plans.Move, says: "gate"},
		"is-huge":           {plan: func(p *plans.Plan) { p.Count = 2_000_000_000 }, direction: plans.Move, says: "2000000000 replicas"},
		"is-far-ahead":      {journal: func(j map[string]any) { j["epoch"], j["begun"] = 1, 300_000_000 }, direction: plans.Move, says: "300000000"},
		"is-no-plan":        {raw: func(string) string { return "kind: Plan\n" }, direction: plans.Move, says: "stsmigrate-hostile-is-no-plan"},
		"is-edited":         {raw: func(s string) string { return strings.Replace(s, "window: 1", "window: 3", 1) }, direction: plans.Move, says: "was edited"},
		"is-text":           {raw: func(string) string { return "\x1b]0;owned\a" + strings.Repeat("[", 1000) }, direction: plans.Move, says: "stsmigrate-hostile-is-text"},
	}
}

func deleting() map[string]any {
	return map[string]any{"whenDeleted": "Delete", "whenScaled": "Delete"}
}

// attack creates the victim and the tenant, and makes the tenant write every forgery for the orchestrators.
func (s *storm) attack(ctx context.Context) error {
	m, err := s.set(ctx, "shop-"+victim, victim, s.pods)
	if err != nil {
		return err
	}
	file := victim + ".yaml"
	if err := s.person(ctx, "plan", fixture.Name, "--name", victim, "-n", m.Namespace, "--context", "east", "--to-context", "west", "--out", file); err != nil {
		return err
	}
	if err := s.permit(ctx, file, "rbac"); err != nil { // and no side gives its consent
		return err
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return err
	}
	as, err := s.tenant(ctx)
	if err != nil {
		return err
	}
	if s.before, err = s.photo(ctx); err != nil {
		return err
	}
	refused := 0
	for name, f := range forgeries() {
		all, err := f.objects(raw, hostilePlan(name))
		if err != nil {
			return err
		}
		for _, o := range all {
			err := as.Create(ctx, o)
			switch {
			case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
				refused++
			case err != nil:
				return fmt.Errorf("the tenant writes %T %s: %w", o, o.GetName(), err)
			}
		}
	}
	s.say("a tenant has put %d hostile plans before the orchestrators; %d of its writes were refused", len(forgeries()), refused)
	return nil
}

// hostilePlan returns the name of the plan of a forgery.
func hostilePlan(name string) string { return hostile + strings.ReplaceAll(name, "'", "") }

// tenant creates the tenant's account, and returns its client.
func (s *storm) tenant(ctx context.Context) (client.Client, error) {
	verbs := []string{"get", "list", "create", "update", "patch", "delete"}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: tenant},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}, {APIGroups: []string{"stsmigrate.dev"}, Resources: []string{"statefulsetmigrations"}, Verbs: verbs}},
	}
	if err := s.east.Create(ctx, role); err != nil {
		return nil, err
	}
	return s.userOfRole(ctx, tenant, tenant)
}

// objects returns the ConfigMaps of a forged plan, and its StatefulSetMigration.
func (f forgery) objects(raw []byte, name string) ([]client.Object, error) {
	p, err := plans.DecodePlan(raw)
	if err != nil {
		return nil, err
	}
	p.Name, p.ID, p.Hash = name, name+"-1", ""
	if f.plan != nil {
		f.plan(p)
	}
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		return nil, err
	}
	written, err := yaml.Marshal(p)
	if err != nil {
		return nil, err
	}
	text := string(written)
	if f.raw != nil {
		text = f.raw(text)
	}
	var j map[string]any
	if written, err = json.Marshal(journal.New(p)); err == nil {
		err = json.Unmarshal(written, &j)
	}
	if err != nil {
		return nil, err
	}
	j["detached"] = true
	if f.journal != nil {
		f.journal(j)
	}
	journal, err := json.Marshal(j)
	fixed := true
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: home, Name: name, Labels: map[string]string{plans.PlanLabel: p.Name}}
	}
	out := []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("stsmigrate-" + p.Name), Immutable: &fixed, Data: map[string]string{"plan.yaml": text}},
		&corev1.ConfigMap{ObjectMeta: meta("stsmigrate-" + p.Name + "-journal"), Data: map[string]string{"journal.json": string(journal)}},
	}
	if f.direction == "" || err != nil {
		return out, err
	}
	d := p.Declared()
	d.Direction = f.direction
	o := records.NewDeclared(home, p.Name)
	o.Object["spec"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
	return append(out, o), err
}

// photo returns the objects of the victim, without the fields that Kubernetes itself keeps changing.
func (s *storm) photo(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for name, at := range map[string]client.Client{"east": s.east, "west": s.west} {
		for _, kind := range []schema.GroupVersionKind{
			{Group: "apps", Version: "v1", Kind: "StatefulSet"},
			{Group: "apps", Version: "v1", Kind: "ControllerRevision"},
			{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
			{Version: "v1", Kind: "PersistentVolumeClaim"},
			{Version: "v1", Kind: "PersistentVolume"},
			{Version: "v1", Kind: "Pod"},
			{Version: "v1", Kind: "Service"},
			{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
			{Version: "v1", Kind: "ConfigMap"},
			{Version: "v1", Kind: "Secret"},
			{Group: "batch", Version: "v1", Kind: "Job"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := at.List(ctx, list); err != nil {
				return nil, err
			}
			for _, o := range list.Items {
				claim, _, _ := unstructured.NestedString(o.Object, "spec", "claimRef", "namespace")
				if o.GetNamespace() != "shop-"+victim && claim != "shop-"+victim {
					continue
				}
				for _, field := range []string{"managedFields", "resourceVersion"} {
					unstructured.RemoveNestedField(o.Object, "metadata", field)
				}
				unstructured.RemoveNestedField(o.Object, "status")
				text, err := json.Marshal(o.Object)
				if err != nil {
					return nil, err
				}
				out[fmt.Sprintf("%s: %s %s/%s", name, kind.Kind, o.GetNamespace(), o.GetName())] = string(text)
			}
		}
	}
	if len(out) < 2*s.pods {
		return nil, errors.New("the victim is not in its own picture")
	}
	return out, nil
}

// unharmed lists the changes to the victim.
func (s *storm) unharmed(ctx context.Context, _ []*moving) (out []string, err error) {
	after, err := s.photo(ctx)
	if err != nil {
		return nil, err
	}
	for what, was := range s.before {
		if after[what] != was {
			out = append(out, fmt.Sprintf("a tenant has changed %s from %s to %s", what, was, after[what]))
		}
		delete(after, what)
	}
	for what, is := range after {
		out = append(out, fmt.Sprintf("a tenant has made %s: %s", what, is))
	}
	slices.Sort(out)
	return out, nil
}

// answered lists the forgeries for which the orchestrators have not reported the expected message: they have
// not read them, or have executed them. Where policies reject the journals there is nothing to read.
func (s *storm) answered(ctx context.Context, _ []*moving) (out []string, err error) {
	if !s.open {
		return nil, nil
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		left, err := s.unanswered(ctx)
		if err == nil {
			out = left
		}
		return len(left) == 0, err
	})
	if wait.Interrupted(err) { // the remaining forgeries are the better message
		err = nil
	}
	return out, err
}

func (s *storm) unanswered(ctx context.Context) (out []string, err error) {
	for name, f := range forgeries() {
		if f.says == "" {
			continue
		}
		said, err := s.said(ctx, hostilePlan(name))
		if err != nil {
			return nil, err
		}
		if !strings.Contains(said, f.says) {
			out = append(out, fmt.Sprintf("of plan %s the orchestrators say %q, expected %q", hostilePlan(name), said, f.says))
		}
	}
	slices.Sort(out)
	return out, nil
}

// said returns the message that is shown for a plan, or, if nothing is shown, the reason in its journal why
// it is blocked.
func (s *storm) said(ctx context.Context, plan string) (string, error) {
	d, err := records.ReadDeclared(ctx, s.east, home, plan)
	if err != nil {
		return "", err
	}
	if d != nil {
		return d.Status.Message, nil
	}
	var cm corev1.ConfigMap
	if err := s.east.Get(ctx, client.ObjectKey{Namespace: home, Name: records.RecordName(plan) + "-journal"}, &cm); err != nil {
		return "", err
	}
	var j journal.Journal
	err = json.Unmarshal([]byte(cm.Data["journal.json"]), &j)
	return j.Blocked, err
}
