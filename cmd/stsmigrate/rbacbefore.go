package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/remarks"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

// before asks for the Roles of users who have no plan yet.
type before struct {
	set                 *draft.Flags
	side                string
	users, groups, args []string
}

// print prints the Roles to look, and those to move. A user who may not read the set gets the Roles to look alone, which
// need no cluster.
func (b before) print(ctx context.Context, a *app) error {
	if len(b.users)+len(b.groups) == 0 {
		return errors.New("say for whom: --user NAME or --group NAME; an orchestrator gets the Roles of one plan (--plan FILE)")
	}
	p, disks, unread := b.drafted(ctx, a)
	if unread != nil && !apierrors.IsForbidden(unread) && !errors.As(unread, new(clusters.ErrIdentity)) {
		return unread
	}
	var out strings.Builder
	for _, side := range plans.Sides() {
		if b.side != "" && b.side != string(side) {
			continue
		}
		printed := []printedRoles{{"look", "plan, check, diff; they write nothing", access.LookRoles(p, side, b.users, b.groups), remarks.Of(nil)}}
		if unread == nil {
			printed = append(printed, printedRoles{"move", "apply, resume, abort, finalize, beside those to look; they write", access.MoveRoles(p, side, b.users, b.groups, access.Names(disks)), remarks.Of(disks).ForUsers()})
		}
		for _, roles := range printed {
			if err := roles.write(&out, side, p); err != nil {
				return err
			}
		}
	}
	if _, err := a.Out.Write([]byte(out.String())); err != nil {
		return err
	}
	if unread != nil {
		fmt.Fprintf(a.ErrOut, "The Roles to move are left out, because they name what has to be read from the clusters, and you may not: %s. When the Roles to look are there, repeat this command.\n", oneLine(unread.Error()))
	}
	return nil
}

// drafted returns the plan that would be made, and its disks. With an error that is about a missing right it is the plan of
// a set of which nothing is known.
func (b before) drafted(ctx context.Context, a *app) (*plans.Plan, []access.Disk, error) {
	f := b.set
	set, err := f.Request(&a.reach, a.read, b.args)
	if err != nil {
		return nil, nil, err
	}
	source, destination, err := a.reach.Both()
	if err != nil {
		return nil, nil, err
	}
	patches, err := f.Patches(a.read)
	if err != nil {
		return nil, nil, err
	}
	p, on, unread := f.Draft(ctx, set, patches, source, destination, a.now())
	if unread != nil {
		return unseen(set, source, destination), nil, unread
	}
	disks, unread := access.Disks(ctx, p, on, nil)
	return p, disks, unread
}

// printedRoles are Roles for one purpose.
type printedRoles struct {
	purpose, commands string
	objects           []client.Object
	beside            remarks.Remarks
}

func (r printedRoles) write(out *strings.Builder, side plans.Side, p *plans.Plan) error {
	fmt.Fprintf(out, "# The Roles to %s, for the %s, %s.\n# The commands that need them: %s.\n", r.purpose, side, p.On(side), r.commands)
	for _, o := range r.objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", r.beside.In(string(text)))
	}
	return nil
}

// unseen is the plan of a set of which nothing is known: it has volumes and a governing Service, as most have.
func unseen(set string, source, destination *reach.End) *plans.Plan {
	p := &plans.Plan{Name: plans.NameFor(set), ID: "unknown", Count: 1, Claims: []plans.ClaimMove{{Template: "data", Mode: plans.Rebind}}, Names: plans.Names{Mode: plans.Bridge, Service: set}}
	p.Source = plans.Ref{Context: source.Context, Namespace: source.Namespace, Name: set}
	p.Destination = plans.Ref{Context: destination.Context, Namespace: destination.Namespace, Name: set}
	if source.Context == destination.Context {
		p.Source.KnownBy, p.Destination.KnownBy = destination.Namespace, destination.Namespace
	} else {
		p.Source.Cluster, p.Claims[0].Mode = "another", plans.Reimport
	}
	return p
}
