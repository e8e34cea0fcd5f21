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
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// journalOf decodes the journal of a plan from a watch event, or returns nil for another object.
func journalOf(e watch.Event) (plan string, j *journal.Journal, err error) {
	cm, ok := e.Object.(*corev1.ConfigMap)
	if !ok || cm.Data["journal.json"] == "" {
		return "", nil, nil
	}
	j = &journal.Journal{}
	return cm.Labels[plans.PlanLabel], j, json.Unmarshal([]byte(cm.Data["journal.json"]), j)
}

// permit grants the orchestrator what a plan needs on both sides ("rbac"), and gives the consent of both
// ("consent"), as their administrators do.
func (s *storm) permit(ctx context.Context, file string, all ...string) error {
	for side, at := range map[string]string{"source": "east", "destination": "west"} {
		if err := s.give(ctx, at, side, file, all...); err != nil {
			return err
		}
	}
	return nil
}

// agree gives the consent of both clusters, where they have policies: one object of each, for all plans.
func (s *storm) agree(ctx context.Context, file string) error {
	s.agreeing.Lock()
	defer s.agreeing.Unlock()
	if s.open {
		return s.give(ctx, "west", "destination", file, "consent --cluster")
	}
	return s.permit(ctx, file, "consent --cluster")
}

// give applies the outputs of stsmigrate for one side, which may all be empty.
func (s *storm) give(ctx context.Context, at, side, file string, all ...string) error {
	var objects bytes.Buffer
	for _, what := range all {
		args := append(strings.Fields(what), "--plan", file, "--side", side)
		out, err := fixture.Command(ctx, s.kubeconfig, s.dir, s.stsmigrate, args...).Output()
		if err != nil {
			return fmt.Errorf("stsmigrate %s: %w", strings.Join(args, " "), err)
		}
		if bytes.Contains(out, []byte("kind:")) {
			fmt.Fprintf(&objects, "---\n%s\n", out)
		}
	}
	if objects.Len() == 0 {
		return nil
	}
	apply := fixture.Command(ctx, s.kubeconfig, s.dir, s.kubectl, "--context", at, "apply", "--server-side", "-f", "-")
	apply.Stdin = &objects
	if said, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, said)
	}
	return nil
}
