package access

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ofAccount asks the API servers of both sides what the account of the orchestrator lacks that is to carry the plan out.
// It usually lacks most while the plan is made, since Roles are printed for a plan that there is. So this only warns.
func ofAccount(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		rights := Rights(i.Plan, side)
		if err := nameVolumes(ctx, i, rights); err != nil {
			return nil, err
		}
		f := check.Finding{
			Level: check.Warn, Object: fmt.Sprintf("the %s (%s)", side, i.Plan.On(side).Context), Want: "its rights to be there before `stsmigrate apply --detach`",
			Remedy: fmt.Sprintf("`stsmigrate rbac --plan FILE --side %s` prints the Roles that the plan needs: the administrator of that side applies them", side),
		}
		denied, err := deniedTo(ctx, i, side, rights)
		switch {
		case apierrors.IsForbidden(err):
			f.Saw = "you may not ask what " + i.Account + " may do there (create subjectaccessreviews)"
		case err != nil:
			return nil, err
		case len(denied) == 0:
			continue
		default:
			f.Saw = i.Account + " may not " + check.Few(denied)
		}
		out = append(out, f)
	}
	return out, nil
}

// deniedTo returns the rights that the account lacks, in words.
func deniedTo(ctx context.Context, i check.Inspection, side plans.Side, rights []part.Right) ([]string, error) {
	verbs, err := lacking(ctx, rights, func(ctx context.Context, r part.Right, verb string) (bool, error) {
		return allowedTo(ctx, i, side, r, verb)
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for k, r := range rights {
		if len(verbs[k]) > 0 {
			out = append(out, strings.Join(verbs[k], ", ")+" "+r.Where(i.Plan, side))
		}
	}
	return out, nil
}

// allowedTo reports whether the account has a right, for its first and its last name if not for all: Roles are printed
// with all of them.
func allowedTo(ctx context.Context, i check.Inspection, side plans.Side, r part.Right, verb string) (bool, error) {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	about := authorizationv1.ResourceAttributes{Group: r.Group, Resource: resource, Subresource: subresource, Verb: verb}
	if !r.ClusterWide {
		about.Namespace = r.In(i.Plan, side)
	}
	ok, err := askOf(ctx, i, side, about)
	if err != nil || ok || r.Nameless(verb) || len(r.Names) == 0 {
		return ok, err
	}
	for _, about.Name = range []string{r.Names[0], r.Names[len(r.Names)-1]} {
		if ok, err = askOf(ctx, i, side, about); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

func askOf(ctx context.Context, i check.Inspection, side plans.Side, about authorizationv1.ResourceAttributes) (bool, error) {
	// An account is in the groups of its namespace, to which a cluster may have bound rights.
	parts := strings.Split(i.Account, ":")
	groups := []string{"system:authenticated", "system:serviceaccounts"}
	if len(parts) == 4 {
		groups = append(groups, "system:serviceaccounts:"+parts[2])
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: i.Account, Groups: groups, ResourceAttributes: &about}}
	if err := i.On[side].Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking the %s what %s may do: %w", side, i.Account, err)
	}
	return review.Status.Allowed, nil
}
