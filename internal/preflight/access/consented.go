package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Consent is the check of that name. A user acts with their own rights, so the check requires nothing of
// them.
func Consent(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Orchestrated == nil {
		return nil, nil
	}
	return Agreed(ctx, i.Plan, i.On, i.Orchestrated())
}

// Agreed requires that every namespace that a plan writes to agrees to that very plan now. It runs on every
// direction, before a process takes the plan over, and again before each wave, so that consent can be withdrawn.
// A plan cannot declare that it needs no consent: its author is the very user against whom the namespaces are
// guarded.
func Agreed(ctx context.Context, p *plans.Plan, on clusters.Clusters, now time.Time) ([]check.Finding, error) {
	var out []check.Finding
	for _, n := range Parties(p) {
		if _, gone := on[n.Side].(clusters.Gone); gone {
			continue // no write can reach that side any more
		}
		f, err := n.asked(ctx, p, on, now)
		if err != nil {
			return nil, err
		}
		if f != nil {
			out = append(out, *f)
		}
	}
	return out, nil
}

func (n Party) asked(ctx context.Context, p *plans.Plan, on clusters.Clusters, now time.Time) (*check.Finding, error) {
	cm, err := n.Consent(ctx, on)
	f := check.Finding{
		Check:  "consent",
		Object: fmt.Sprintf("ConfigMap %s/%s on the %s (%s)", n.Namespace, ConsentMap, n.Side, p.On(n.Side).Context),
		Want:   fmt.Sprintf("the namespace to agree that an orchestrator carries out plan %s: %s %s: %s", p.ID, n.own, strings.ReplaceAll(n.key, "-", " "), n.other),
		Remedy: fmt.Sprintf("`stsmigrate consent --plan FILE --side %s` prints the ConfigMap: the owner of namespace %s reads the plan and applies it", n.Side, n.Namespace),
	}
	switch {
	case apierrors.IsForbidden(err):
		f.Saw, f.Passing = "it must not be looked at: "+err.Error(), true
	case err != nil:
		return nil, err
	case cm == nil:
		f.Saw = "there is none"
	default:
		by, why := n.Agrees(p, cm, now)
		switch {
		case why != "":
			f.Saw = why
		case by.wide():
			f.Level, f.Saw = check.Warn, fmt.Sprintf("the line %q under %s agrees to more than this plan", by, n.key)
		default:
			return nil, nil
		}
	}
	return &f, nil
}

// ErrNotAgreed lists the namespaces that a plan writes to and that do not agree to it.
type ErrNotAgreed struct{ Findings []check.Finding }

func (e ErrNotAgreed) Error() string {
	return "nothing is written without consent: " + check.Words(e.Findings)
}

// ReasonID implements reasons.Reasoned.
func (e ErrNotAgreed) ReasonID() reasons.ID { return reasons.NoConsent }

// Consent reads the ConfigMap of a namespace; nil where there is none.
func (n Party) Consent(ctx context.Context, on clusters.Clusters) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := on[n.Side].Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: ConsentMap}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s/%s on the %s: %w", n.Namespace, ConsentMap, n.Side, err)
	}
	return &cm, nil
}
