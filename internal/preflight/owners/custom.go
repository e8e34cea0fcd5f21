package owners

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Custom lists objects of a side's namespace of a kind that its cluster need not know. Without the right to list them the
// findings say so.
func Custom(ctx context.Context, i check.Inspection, side plans.Side, kind schema.GroupVersionKind) ([]unstructured.Unstructured, []check.Finding, error) {
	return custom(ctx, i, side, kind)
}
