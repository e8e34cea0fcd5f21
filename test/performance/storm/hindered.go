package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// hindered is the name of the plan that cannot begin.
const hindered = "hindered"

// hinder hands over one more plan, and creates an autoscaler for its set before an orchestrator begins it.
func (s *storm) hinder(ctx context.Context) error {
	m, err := s.set(ctx, "shop-"+hindered, hindered, s.pods)
	if err != nil {
		return err
	}
	if err := s.handOver(ctx, m); err != nil {
		return err
	}
	return s.east.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: fixture.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: fixture.Name}, MaxReplicas: int32(s.pods),
		},
	})
}

// giveUp acts as a user who finds that plan blocked: it aborts the plan although its check still fails. The
// plan must have had no effect.
func (s *storm) giveUp(ctx context.Context) error {
	var why string
	if err := s.journaled(ctx, func(j *journal.Journal) bool { why = j.Blocked; return why != "" }); err != nil {
		return err
	}
	if !strings.Contains(why, "autoscaler") {
		return fmt.Errorf("plan %s is blocked, expected it to be for its autoscaler: %s", hindered, why)
	}
	if err := s.person(ctx, "abort", hindered, "-n", home, "--context", "east", "--yes"); err != nil {
		return err
	}
	if err := s.journaled(ctx, func(j *journal.Journal) bool {
		why = j.Blocked
		return why != "" && j.Observed.Direction == plans.Abort || j.Outcome == plans.Aborted
	}); err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("plan %s cannot be aborted: %s", hindered, why)
	}
	s.say("plan %s, which was blocked for an autoscaler, is aborted", hindered)
	err := s.west.Get(ctx, client.ObjectKey{Namespace: "shop-" + hindered, Name: fixture.Name}, &appsv1.StatefulSet{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("west: the set of plan %s is there (%w)", hindered, err)
	}
	return nil
}

// journaled waits until the journal of that plan satisfies the condition.
func (s *storm) journaled(ctx context.Context, is func(*journal.Journal) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := s.east.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(home), client.MatchingLabels{plans.PlanLabel: hindered})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		_, j, err := journalOf(e)
		if err != nil {
			return err
		}
		if j != nil && is(j) {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("plan %s is not what it should be; `stsmigrate status` says why", hindered), ctx.Err())
}
