package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/preflight/access"
	"github.com/stsmigrate/stsmigrate/records"
)

// reached is a plan from a file, and the clusters of its sides as far as they could be reached. The output
// for one namespace is for a user who can see that namespace alone.
type reached struct {
	plan *plans.Plan
	on   clusters.Clusters
	lost map[plans.Side]error
}

func (r *reach) either(ctx context.Context, p *plans.Plan) (*reached, error) {
	r.oneFile()
	ends, lost, err := r.sides(ctx, p)
	if err != nil {
		return nil, err
	}
	on := clusters.Clusters{}
	for side, e := range ends {
		on[side] = e.client
	}
	return &reached{p, on.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: p.Source, plans.Destination: p.Destination}), lost}, nil
}

// disks reads which volumes the account of a side has to access. Those of the destination are the source's
// volumes until they have moved.
func (r *reached) disks(ctx context.Context, side plans.Side) ([]access.Disk, error) {
	if !r.plan.HasVolumes() {
		return nil, nil
	}
	j, err := r.journal(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.lost[plans.Source]; err != nil && side == plans.Destination && (j == nil || !j.Assurances.SourceGone) {
		return nil, fmt.Errorf("which volumes the destination gets is known in the source's cluster: %w", err)
	}
	disks, err := access.Disks(ctx, r.plan, r.on, j)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("the moved volumes of plan %s cannot be read, and Roles without their names would take rights away: %w; get the right to list PersistentVolumes, or let a user with that right run this command", r.plan.Name, err)
	}
	return disks, err
}

// journal reads the journal of the plan where commands keep it. It returns nil if there is none, or if it may
// not be read. The journal of a detached plan is elsewhere, and adds nothing here to the marks on the
// volumes.
func (r *reached) journal(ctx context.Context) (*journal.Journal, error) {
	if r.on[plans.Destination] == nil {
		return nil, nil
	}
	store := records.NewStore(r.on[plans.Destination], r.plan.Destination.Namespace, r.plan.Name)
	have, err := store.Plan(ctx)
	if errors.As(err, new(records.ErrNoPlan)) || apierrors.IsForbidden(err) || err == nil && have.ID != r.plan.ID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j, _, err := store.Journal(ctx, r.plan)
	if errors.As(err, new(records.ErrNoJournal)) {
		return nil, nil
	}
	return j, err
}

func namesOf(disks []access.Disk) []string {
	var out []string
	for _, d := range disks {
		out = append(out, d.Name)
	}
	return out
}

// remarks are the comments that are added to the printed objects.
type remarks struct{ disks []access.Disk }

// in adds the remarks to an object in YAML, rule by rule: which disk a volume stands for, and which rights no
// Role can limit.
func (r remarks) in(text string) string {
	const rule = "\n- apiGroups:"
	rules := strings.Split(text, rule)
	for k := 1; k < len(rules); k++ {
		beside := map[string]string{}
		if !strings.Contains(rules[k], "\n  resourceNames:\n") {
			beside["create"] = "RBAC cannot limit this to names"
		}
		if strings.Contains(rules[k], "\n  - persistentvolumes\n") {
			for _, d := range r.disks {
				if d.Handle != "" {
					beside[d.Name] = printable(d.Handle)
				}
			}
		}
		lines := strings.Split(rules[k], "\n")
		for n, line := range lines {
			if item, ok := strings.CutPrefix(line, "  - "); ok && beside[strings.Trim(item, `"`)] != "" {
				lines[n] += " # " + beside[strings.Trim(item, `"`)]
			}
		}
		rules[k] = strings.Join(lines, "\n")
	}
	return strings.Join(rules, rule)
}

// printable returns untrusted text in a form that cannot leave its line.
func printable(s string) string {
	if quoted := strconv.QuoteToASCII(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
