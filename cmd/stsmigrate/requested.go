package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// requested is a plan that was requested in the namespace of its set: its users know it by its object alone.
type requested struct {
	*app
	*reach.Requested
}

// known returns the plan of a name of which the record cannot be read, if its object shows it.
func known(ctx context.Context, a *app, name string, why error) (requested, error) {
	q, err := a.reach.Requested(ctx, name, why)
	return requested{a, q}, err
}

// asks writes a request into the object. Only the orchestrator knows whether the plan can do it, and answers there.
func (q requested) asks(ctx context.Context, question string, change func(*plans.Declaration)) error {
	if q.dryRun == "client" {
		return q.confirm(question)
	}
	if q.dryRun != "server" {
		if err := q.confirm(question); err != nil {
			return err
		}
	}
	home := q.Home.Client
	if q.dryRun == "server" {
		home = client.NewDryRunClient(home)
	}
	err := records.Request(ctx, home, q.Declared, func(d *plans.Declaration) error {
		if d.ApprovedHash == "" {
			return fmt.Errorf("StatefulSetMigration %s/%s approves no plan, so there is nothing to change: set spec.approvedHash to %s, or delete the object", q.Home.Namespace, q.Object.GetName(), q.Declared.Status.Hash)
		}
		change(d)
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(q.Out, "StatefulSetMigration %s/%s has the request, and the orchestrator answers in its status: %s\n", q.Home.Namespace, q.Object.GetName(), q.Command("status"))
	return q.undone()
}

// pause requests a pause.
func (q requested) pause(ctx context.Context) error {
	q.yes = true // as for any plan
	return q.asks(ctx, "the plan would pause when the ordinal under way has arrived", func(d *plans.Declaration) { d.Paused = true })
}

// turn requests a direction.
func (q requested) turn(ctx context.Context, direction plans.Direction, route plans.Limits, speed pace) error {
	question := map[plans.Direction]string{
		plans.Move:     "Continue the plan of StatefulSetMigration %s/%s (%s -> %s)?",
		plans.Abort:    "Abort the plan of StatefulSetMigration %s/%s (%s -> %s), and move every ordinal back?",
		plans.Finalize: "Finalize the plan of StatefulSetMigration %s/%s (%s -> %s), and delete what is left of the source? There is no way back.",
	}[direction]
	return q.asks(ctx, fmt.Sprintf(question, q.Home.Namespace, q.Object.GetName(), q.Declared.Status.Source, q.Declared.Status.Destination), func(d *plans.Declaration) {
		if direction == plans.Move { // it goes on where it goes
			directs(d, d.Direction, q.keepsNames, speed)
		} else {
			directs(d, direction, q.keepsNames, speed)
		}
		d.Request = requestOf(q.app, route)
	})
}

// status shows what the orchestrator says of a plan.
func (q requested) status(watch bool) error {
	if watch || q.output != "" && q.output != "wide" {
		return fmt.Errorf("the record of this plan is where its orchestrator is, and its object has what there is to see: `%s get statefulsetmigration %s -o yaml`, or -w", q.Home.Kubectl(q.Home.Namespace), q.Object.GetName())
	}
	s := q.Declared.Status
	rows := [][]string{
		{"plan:", records.PlanOf("", q.Object)},
		{"source:", s.Source},
		{"destination:", s.Destination},
		{"state:", string(s.State)},
		{"hash:", s.Hash},
	}
	if s.Since != nil {
		rows[3][1] += " since " + s.Since.UTC().Format("2006-01-02T15:04:05Z")
	}
	text := output.Table(rows)
	if s.Message != "" {
		text += "\n" + strings.TrimSpace(s.Message) + "\n"
	}
	for _, c := range s.Conditions {
		if c.Type == "Accepted" && c.Status == "False" && c.Message != "" && c.Message != s.Message {
			text += "not accepted: " + c.Message + "\n"
		}
	}
	fmt.Fprint(q.Out, text)
	return stateCode(&engine.View{State: s.State})
}

// wait says how to wait for a plan that is known by its object alone.
func (q requested) wait(want []plans.State) error {
	for _, state := range want {
		if state == plans.StateMoved || state == plans.StateFinalized || state == plans.StateAborted {
			return fmt.Errorf("the record of this plan is where its orchestrator is; its object tells who waits: `%s wait --for=condition=%s statefulsetmigration/%s --timeout=24h`", q.Home.Kubectl(q.Home.Namespace), state, q.Object.GetName())
		}
	}
	return errors.New("the record of this plan is where its orchestrator is, and its object has conditions for Moved, Finalized and Aborted alone: wait for one of these")
}
