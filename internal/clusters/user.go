package clusters

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// User returns the name by which an API server knows the user of a client, or "" if it does not say: servers before
// Kubernetes 1.28 do not know the question. The name is for reports only. Nothing is written.
func User(ctx context.Context, c client.Client) string {
	var review authenticationv1.SelfSubjectReview
	if c == nil || c.Create(ctx, &review) != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}
