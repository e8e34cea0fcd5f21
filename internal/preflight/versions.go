package preflight

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// versions asks both API servers for their version. It leaves out a server that does not let the user read
// it.
func (w survey) versions(ctx context.Context) (map[plans.Side]string, error) {
	out := map[plans.Side]string{}
	for _, side := range plans.Sides() {
		c, ok := clusters.Ground(w.On[side]).(discovery.ServerVersionInterfaceWithContext)
		if !ok {
			continue
		}
		info, err := c.ServerVersionWithContext(ctx)
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("asking the API server of the %s for its version: %w", side, err)
		}
		out[side] = info.GitVersion
	}
	return out, nil
}

const (
	// minDestinationMinor is the first version that keeps spec.ordinals by default.
	minDestinationMinor = 27
	// maxMinorSkew is how many minor versions two clusters may be apart: as many as the components of one
	// cluster.
	maxMinorSkew = 3
)

// ApiVersion requires API servers that treat a StatefulSet alike. Versions only promise it; the checks
// ordinals-kept and admission try it out.
func ApiVersion(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	now := i.Now.Versions
	if i.Midway {
		var err error
		if now, err = (survey{i.Pair}).versions(ctx); err != nil {
			return nil, err
		}
	}
	return versionFindings(i.Plan, now), nil
}

// versionFindings compares the versions of the API servers with what a move needs, with each other, and with
// the versions when the plan was made.
func versionFindings(p *plans.Plan, now map[plans.Side]string) []check.Finding {
	var out []check.Finding
	minor := map[plans.Side]uint{}
	for _, side := range plans.Sides() {
		object := "API server of the " + string(side) + " (" + p.On(side).Context + ")"
		v, err := version.ParseGeneric(now[side])
		if err != nil {
			out = append(out, check.Finding{Level: check.Warn, Object: object, Saw: "it does not say its version", Want: "Kubernetes 1.27 or newer", Remedy: "look it up: `kubectl version`"})
			continue
		}
		minor[side] = v.Minor()
		if side == plans.Destination && v.Minor() < minDestinationMinor {
			out = append(out, check.Finding{
				Object: object, Saw: "it is Kubernetes " + now[side] + ", which does not keep a set's start ordinal",
				Want: "Kubernetes 1.27 or newer", Remedy: "upgrade the destination cluster",
			})
		}
		if was, err := version.ParseGeneric(p.Versions[side]); err == nil && v.Minor() < was.Minor() {
			out = append(out, check.Finding{
				Object: object, Saw: "it is Kubernetes " + now[side] + ", and was " + p.Versions[side] + " when the plan was made",
				Want: "no downgrade during a move", Remedy: "upgrade it again; with no ordinal under way yet, a new plan will do",
			})
		}
	}
	if len(minor) < len(plans.Sides()) {
		return out
	}
	from, to := minor[plans.Source], minor[plans.Destination]
	if to < from || to > from+maxMinorSkew {
		out = append(out, check.Finding{
			Level: check.Warn, Object: "API servers of both sides", Saw: fmt.Sprintf("the source is Kubernetes %s, the destination %s", now[plans.Source], now[plans.Destination]),
			Want: fmt.Sprintf("a destination that is as new as the source, or up to %d minor versions newer", maxMinorSkew), Remedy: "find out what the pods need that the destination does not have, or does otherwise",
		})
	}
	return out
}

// tryOut sends the destination set as a dry run and returns the set as the API server made it.
func tryOut(ctx context.Context, i check.Inspection) (*appsv1.StatefulSet, error) {
	t, err := tryBoth(ctx, i)
	if err == nil {
		err = t.Refusal
	}
	return t.Back, err
}

func tryBoth(ctx context.Context, i check.Inspection) (sets.Trial, error) {
	return check.Once(i, trialKey{}, func() (sets.Trial, error) { return sets.Try(ctx, i.Pair, i.Now.Set) })
}

// OrdinalsKept proves that the destination knows spec.ordinals: an API server that drops the field would make
// pods with ordinals that run elsewhere.
func OrdinalsKept(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	back, err := tryOut(ctx, i)
	if apierrors.IsNotFound(err) || check.Refused(err) {
		return nil, nil // the checks namespace and admission report it
	}
	if err != nil {
		return nil, err
	}
	if got := plans.SliceOf(back).Start; got != i.Plan.End() {
		return []check.Finding{{
			Object: "API server of " + i.Plan.Destination.String(), Saw: fmt.Sprintf("a trial set with ordinals.start %d came back with %d", i.Plan.End(), got),
			Want: "the field to be kept (Kubernetes 1.27 or newer)", Remedy: "upgrade the destination cluster",
		}}, nil
	}
	return nil, nil
}

// Admission requires that the admission of the destination (webhooks, policies, quotas) accepts a copy of the
// source's set, and leaves it unchanged. Between two waves it requires that the set which receives the ordinals may grow.
func Admission(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Midway {
		if found, err := grown(ctx, i); err != nil || len(found) > 0 || i.From == plans.Destination {
			return found, err
		}
	}
	back, err := tryOut(ctx, i)
	object := "API server of " + i.Plan.Destination.String()
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // no namespace; the check namespace reports it
	case check.Refused(err):
		return []check.Finding{{
			Object: object, Saw: "it refuses the set: " + strings.Join(strings.Fields(err.Error()), " "), Want: "it to accept a copy of the source's set",
			Remedy: "remove what it objects to, or choose another destination", Passing: answers.MayPass(err),
		}}, nil
	case err != nil:
		return nil, err
	}
	t, err := tryBoth(ctx, i)
	if err != nil {
		return nil, err
	}
	changed := sets.Differing(t.Sent, back)
	if len(changed) == 0 {
		return nil, nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: object, Saw: "a copy of the source's set comes back with another spec." + strings.Join(changed, ", spec."), Want: "the set to be accepted unchanged",
		Remedy: "look at the destination's mutating webhooks and policies, and at fields that its version does not know or fills in",
	}}, nil
}

// grown sends the write that gives the ordinals to the side which receives them, as a dry run: a policy may refuse that a
// set is scaled up.
func grown(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	set := i.Now.Existing
	if i.To() == plans.Source {
		set = i.Now.Set
	}
	slice, next := i.Plan.Slice(i.To(), i.Ordinals, true), set.DeepCopy()
	if next.Spec.Replicas = &slice.Replicas; slice.Start != 0 || next.Spec.Ordinals != nil {
		next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: slice.Start}
	}
	err := writes.Change(ctx, i.On[i.To()], set, next, client.DryRunAll)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil, nil // another write came first: the looks observe the result
	case check.Refused(err):
		return []check.Finding{{
			Object: i.Name(i.To()), Saw: fmt.Sprintf("its API server refuses the ordinals %s (dry run): %s", slice, strings.Join(strings.Fields(err.Error()), " ")), Want: "it to take them",
			Remedy: "remove what it objects to",
		}}, nil
	}
	return nil, fmt.Errorf("trying the ordinals %s of %s: %w", slice, i.Name(i.To()), err)
}

// trialKey is the key of check.Once for the dry run of the set.
type trialKey struct{}

// Versions returns the versions that the API servers of both sides report now.
func Versions(ctx context.Context, on clusters.Pair) (map[plans.Side]string, error) {
	return survey{on}.versions(ctx)
}
