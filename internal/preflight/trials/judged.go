package trials

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ownPolicy is in the words of the policies that stsmigrate itself installs.
var ownPolicy = regexp.MustCompile(`ValidatingAdmissionPolicy '?stsmigrate-`)

// judged turns the answer to a dry run into findings.
func (t trier) judged(a ask, name string, err error) ([]check.Finding, error) {
	said := words(err)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), meta.IsNoMatchError(err):
		return nil, nil // another write came first, or the namespace or the kind is not there, which other checks and the looks report
	case apierrors.IsBadRequest(err) && strings.Contains(said, "does not support dry run"):
		t.note(&t.seen.unheard, a)
		t.seen.lock.Lock()
		defer t.seen.lock.Unlock()
		t.seen.why = err
		return nil, nil
	case apierrors.IsForbidden(err) && (strings.Contains(said, " cannot "+string(a.Verb)+" resource") || strings.Contains(said, "RBAC: ")):
		return nil, nil // the check permissions reports it
	case strings.Contains(said, answers.FullQuota) && a.Verb == part.Create && t.From != a.Side.Other():
		return nil, nil // what the ordinals use up here is free when they have left
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsInternalError(err):
		return t.refused(a, name, err), nil
	}
	return nil, fmt.Errorf("trying to %s %s: %w", a.verb(), t.object(a), err)
}

// refused is the finding of a write that is not let through. Of the policies of stsmigrate itself, which are about who writes,
// other checks ask more exactly, except of that for sets.
func (t trier) refused(a ask, name string, err error) []check.Finding {
	f := check.Finding{
		Object: t.object(a), Saw: fmt.Sprintf("the API server refuses to %s it (dry run): %s", a.verb(), words(err)), Want: "it to be let through: " + a.What,
		Remedy:  "let the owner of that rule make an exception for the time of the move",
		Passing: answers.MayPass(err),
	}
	if a.OfClaim {
		f.Object = fmt.Sprintf("%s %s on the %s (%s)", a.Kind, name, a.Side, t.Plan.On(a.Side).Context)
	}
	if a.step.Op != "" {
		f.Want += " (step " + a.step.ID() + ")"
	}
	if !ownPolicy.MatchString(f.Saw) {
		return []check.Finding{f}
	}
	if native(t.Plan, a) != plans.NativeKind || (t.Orchestrated != nil || t.Account != "") && !t.Midway {
		return nil
	}
	f.Remedy = "let the cluster's administrator name the accounts that carry plans out: values policies.accounts (orchestrators) and policies.movers (users) of `stsmigrate install policies`"
	if t.Draft {
		f.Level, f.Want = check.Warn, f.Want+", if you carry the plan out yourself"
	}
	return []check.Finding{f}
}

// object names what a write is about, as a finding prints it.
func (t trier) object(a ask) string {
	return fmt.Sprintf("%s %s on the %s (%s)", a.Kind, a.Object(), a.Side, t.Plan.On(a.Side).Context)
}

// unheard says which writes could not be tried, since a webhook that has side effects is asked for no dry run.
func (t trier) unheard() []check.Finding {
	if len(t.seen.unheard) == 0 {
		return nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: list(t.seen.unheard), Saw: "a webhook is asked for no dry run, so that it could not be tried: " + words(t.seen.why), Want: "to know that it is let through",
		Remedy: "ask the operator of that webhook whether it lets it through",
	}}
}

// list names writes in a few words.
func list(all []ask) string {
	var names []string
	known := map[string]bool{}
	for _, a := range all {
		name := fmt.Sprintf("%s of %ss on the %s", strings.ToLower(a.operation()), a.Kind, a.Side)
		if !known[name] {
			names = append(names, name)
		}
		known[name] = true
	}
	return check.Few(names)
}

// words returns an error in one line.
func words(err error) string {
	if err == nil {
		return ""
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// holding returns what was answered to the creation of a placeholder. A quota that is full with the one that the plan has made
// already has let it in.
func (t trier) holding(ctx context.Context, a ask, how kind, answer error) error {
	if a.Kind != "Pod" || !strings.Contains(words(answer), answers.FullQuota) {
		return answer
	}
	have, err := t.read(ctx, a, how)
	if err != nil || have == nil || !(plans.Stamp{Plan: t.Plan.ID}.Mine(have)) {
		return answer
	}
	return nil
}
