package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/demo/stage"
)

// journal reads the journal of a plan that a watch has brought; nil if it is something else.
func journal(e watch.Event) (plan string, j *plans.Journal, err error) {
	cm, ok := e.Object.(*corev1.ConfigMap)
	if !ok || cm.Data["journal.json"] == "" {
		return "", nil, nil
	}
	j = &plans.Journal{}
	return cm.Labels[plans.PlanLabel], j, json.Unmarshal([]byte(cm.Data["journal.json"]), j)
}

// permit gives the orchestrator what a plan needs on both sides ("rbac"), and lets both agree ("consent"): as the
// people do who are responsible for them.
func (s *storm) permit(ctx context.Context, file string, all ...string) error {
	for _, what := range all {
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
