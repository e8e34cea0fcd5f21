package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestsFrom is the key of ConsentMap that says from where moves of its namespace may be requested: a line for each
// CLUSTER/NAMESPACE, the UID of kube-system there and the namespace of the requesting objects. It agrees to no move.
const requestsFrom = "requests-from"

// MayRequest returns why objects in another namespace may not request moves of a namespace, or "" if they may. from is
// that other namespace as a line names it. There is no line for any namespace: who may write objects in one that is made
// tomorrow is not known today.
func MayRequest(ctx context.Context, on client.Reader, namespace, from string) (why string, err error) {
	var cm corev1.ConfigMap
	err = on.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ConsentMap}, &cm)
	want := fmt.Sprintf("expected the line %q under %s of ConfigMap %s/%s there, which the owner of that namespace writes", from, requestsFrom, namespace, ConsentMap)
	switch {
	case apierrors.IsNotFound(err):
		return "there is no such ConfigMap; " + want, nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("it must not be looked at (%v); %s", err, want), nil
	case err != nil:
		return "", fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, ConsentMap, err)
	}
	if slices.Contains(strings.Fields(cm.Data[requestsFrom]), from) {
		return "", nil
	}
	return want, nil
}
