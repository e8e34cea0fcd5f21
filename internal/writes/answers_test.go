package writes

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The answers after which the next look sees the true state are no errors. Everything else is one.
func TestOnlyAnswersAreIgnored(t *testing.T) {
	of := schema.GroupResource{Resource: "persistentvolumes"}
	for name, c := range map[string]struct {
		err     error
		ignored bool
	}{
		"it has changed":          {apierrors.NewConflict(of, "a", errors.New("changed")), true},
		"it exists":               {apierrors.NewAlreadyExists(of, "a"), true},
		"it is gone":              {apierrors.NewNotFound(of, "a"), true},
		"it is gone, with more":   {fmt.Errorf("writing a: %w", apierrors.NewNotFound(of, "a")), true},
		"nothing":                 {nil, true},
		"it is not allowed":       {apierrors.NewForbidden(of, "a", errors.New("no")), false},
		"nobody knows the writer": {apierrors.NewUnauthorized("no"), false},
		"it is wrong":             {apierrors.NewBadRequest("no"), false},
		"it takes too long":       {apierrors.NewTimeoutError("no answer", 0), false},
		"nothing was answered":    {errors.New("connection refused"), false},
	} {
		if got := IgnoreAnswers(c.err); (got == nil) != c.ignored || !c.ignored && !errors.Is(got, c.err) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
