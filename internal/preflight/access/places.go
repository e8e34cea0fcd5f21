package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// PodsUnmade returns why the user cannot make the placeholders of a plan, or "". An orchestrator gets the right with the
// Roles of the plan.
func PodsUnmade(ctx context.Context, i check.Inspection) (string, error) {
	if i.Account != "" {
		return "", nil
	}
	for _, side := range plans.Sides() {
		for _, verb := range []string{"create", "delete"} {
			r := part.Right{Resource: "pods", Verbs: []string{verb}}
			if verb == "delete" {
				for o := range i.Plan.Ordinals().All() {
					r.Names = append(r.Names, i.Plan.Place(side, o), plans.Anchor(i.Plan, side, o))
				}
			}
			ok, err := Allowed(ctx, i, side, r, verb)
			if apierrors.IsForbidden(err) {
				return fmt.Sprintf("who makes this plan may not ask what it may do on the %s", side), nil
			}
			if err != nil || !ok {
				return fmt.Sprintf("who makes this plan may not %s pods in namespace %s of the %s", verb, i.Plan.On(side).Namespace, side), err
			}
		}
	}
	return "", nil
}
