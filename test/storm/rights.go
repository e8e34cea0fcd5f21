package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/demo/stage"
)

// journal decodes the journal of a plan from a watch event, or returns nil for another object.
func journal(e watch.Event) (plan string, j *plans.Journal, err error) {
	cm, ok := e.Object.(*corev1.ConfigMap)
	if !ok || cm.Data["journal.json"] == "" {
		return "", nil, nil
	}
	j = &plans.Journal{}
	return cm.Labels[plans.PlanLabel], j, json.Unmarshal([]byte(cm.Data["journal.json"]), j)
}

// permit grants the orchestrator what a plan needs on both sides ("rbac"), and gives the consent of both
// ("consent"), as their administrators do.
func (s *storm) permit(ctx context.Context, file string, all ...string) error {
	s.agreeing.Lock() // the consent of the cluster is one object for all plans
	defer s.agreeing.Unlock()
	for _, what := range all {
		for side, at := range map[string]string{"source": "east", "destination": "west"} {
			if err := s.give(ctx, at, append(strings.Fields(what), "--plan", file, "--side", side)); err != nil {
				return err
			}
		}
	}
	return nil
}

// give applies the output of stsmigrate for one side, which may be empty.
func (s *storm) give(ctx context.Context, at string, args []string) error {
	out, err := stage.Command(ctx, s.kubeconfig, s.dir, s.stsmigrate, args...).Output()
	if err != nil {
		return fmt.Errorf("stsmigrate %s: %w", strings.Join(args, " "), err)
	}
	if !bytes.Contains(out, []byte("kind:")) {
		return nil
	}
	apply := stage.Command(ctx, s.kubeconfig, s.dir, s.kubectl, "--context", at, "apply", "--server-side", "-f", "-")
	apply.Stdin = bytes.NewReader(out)
	if said, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, said)
	}
	return nil
}
