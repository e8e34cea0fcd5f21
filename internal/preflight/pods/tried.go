package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
)

// Tried returns the pod of the first ordinal as the API server of the side that the ordinals come to would let it in; nil
// where it may not be tried, or is refused, which the check pod-accepted reports.
func Tried(ctx context.Context, i check.Inspection) (*corev1.Pod, error) {
	may, err := mayTry(ctx, i)
	if err != nil || !may {
		return nil, err
	}
	t, err := dryRunPod(ctx, i)
	if err != nil || t.refusal != nil {
		return nil, err
	}
	return t.pod.DeepCopy(), nil
}
