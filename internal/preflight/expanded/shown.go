package expanded

import (
	"context"
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Shown returns the difference between the pod of the first ordinal as the source runs it and as the destination would, one
// line for each field: what the namespace, the cluster, admission and the patches of the plan make of it.
func Shown(ctx context.Context, i check.Inspection) (string, error) {
	s, err := look(ctx, i)
	if err != nil {
		return "", err
	}
	a, err := s.admission(ctx, i)
	if err != nil {
		return "", err
	}
	here, there, how := s.source(), s.arriving(), "by the templates alone: no pod could be tried there, or none runs here"
	if a != nil {
		here, there, how = a.real[plans.Source], a.real[plans.Destination], "as it runs, and as a dry run there returns it"
	}
	found, err := build.Differences(expansion.Bare(expansion.Expand(here, s.at[plans.Source])), expansion.Bare(expansion.Expand(there, s.at[plans.Destination])))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nPod %s on the source and on the destination (%s):\n", s.source().Name, how)
	n := 0
	for _, d := range found {
		if a != nil && a.group(d.Path) == "" {
			continue
		}
		n++
		fmt.Fprintf(&b, "  %s: %s -> %s\n", d.Path, d.Before, d.After)
	}
	if n == 0 {
		b.WriteString("  nothing differs\n")
	}
	return b.String(), nil
}
