package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/demo/stage"
)

func journal(cm *corev1.ConfigMap) (*plans.Journal, error) {
	var j plans.Journal
	return &j, json.Unmarshal([]byte(cm.Data["journal.json"]), &j)
}

// permit gives the orchestrator what a plan needs on both sides, and lets both agree: as the
// people do who are responsible for them.
func (s *storm) permit(ctx context.Context, file string) error {
	for _, what := range []string{"rbac", "consent"} {
		for side, at := range map[string]string{"source": "east", "destination": "west"} {
			out, err := stage.Command(ctx, s.kubeconfig, s.dir, s.stsmigrate, what, "--plan", file, "--side", side).Output()
			if err != nil {
				return fmt.Errorf("stsmigrate %s --side %s: %w", what, side, err)
			}
			apply := stage.Command(ctx, s.kubeconfig, s.dir, s.kubectl, "--context", at, "apply", "-f", "-")
			apply.Stdin = bytes.NewReader(out)
			if said, err := apply.CombinedOutput(); err != nil {
				return fmt.Errorf("kubectl apply: %w\n%s", err, said)
			}
		}
	}
	return nil
}
