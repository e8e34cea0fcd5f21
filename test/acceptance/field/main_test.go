// Package field_test plays sets as people really have them: each file in testdata has the objects that exist before, and
// says in its lines `#! ...` what check, apply, abort and finalize must say and do (story.go). Every file has two real
// control planes of its own, because policies and nodes belong to a whole cluster.
package field_test

import (
	"context"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

var binary, kubectl string

func TestMain(m *testing.M) {
	fixture.Tests("field", 2, func(ctx context.Context, dir string) (code int, err error) {
		if binary, err = fixture.Build(ctx, dir, "stsmigrate"); err != nil {
			return 1, err
		}
		if kubectl, err = cluster.Program(ctx, "kubectl"); err != nil {
			return 1, err
		}
		return m.Run(), nil
	})
}
