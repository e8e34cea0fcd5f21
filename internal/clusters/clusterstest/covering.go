// Package clusterstest has what tests of other packages put in the place of watches.
package clusterstest

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// Covering are watches that report every change, and keep nothing. It implements clusters.Watching.
type Covering struct{}

// Covers implements clusters.Watching.
func (Covering) Covers(clusters.ObjectKey) bool { return true }

// Absent implements clusters.Watching.
func (Covering) Absent(clusters.ObjectKey) bool { return false }

// Stored implements clusters.Watching.
func (Covering) Stored(clusters.ObjectKey) client.Object { return nil }

// Wants implements clusters.Watching.
func (Covering) Wants(clusters.ObjectKey, client.Object) {}
