package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/findings"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func (a *app) finalizeCommand() *cobra.Command {
	var cmd *cobra.Command
	cmd = a.turnCommand("finalize", plans.Finalize, "End a complete move: delete the emptied source set and our marks. There is no way back",
		"Finalize plan %s: delete what is left of %s? There is no way back.", func(t *reach.Target, j *journal.Journal) (func(*journal.Journal) error, error) {
			if !a.keepsNames {
				tellEnding(cmd.Context(), a, t, j, j.KeepNames)
				return nil, deserted(cmd.Context(), t, a.word)
			}
			if a.word.SourceGone {
				return nil, errors.New("--keep-names: the old names were answered in the source's cluster too, and that is gone")
			}
			tellEnding(cmd.Context(), a, t, j, true)
			return func(j *journal.Journal) error { return requests.KeepNames(t.Plan, j) }, nil
		})
	a.sourceGoneFlag(cmd)
	a.wordFlags(cmd)
	cmd.Flags().StringSliceVar(&a.word.Ignore, "ignore", nil, "clients: take the bridge away although a Service of the source has no other endpoint")
	program.Before(cmd, func() error {
		for _, name := range a.word.Ignore {
			if name != dns.IgnoreClients {
				return fmt.Errorf("--ignore %s: expected %s, the one check that finalize asks", name, dns.IgnoreClients)
			}
		}
		return nil
	})
	cmd.Flags().BoolVar(&a.keepsNames, "keep-names", false, "leave the old names answered, for clients that still use them")
	return cmd
}

// tellEnding says what stops with the end of a move, and who would make the source set again: before the question, and once
// more after it. It is no reason against the end, and neither is a failure to look.
func tellEnding(ctx context.Context, a *app, t *reach.Target, j *journal.Journal, namesKept bool) {
	if a.word.SourceGone || j.Assurances.SourceGone {
		return // a cluster that is gone makes no set
	}
	var found []check.Finding
	err := t.Connected()
	if err == nil {
		found, err = preflight.Ending(ctx, t.Plan, t.On, a.caller(t, j), namesKept)
	}
	if err != nil {
		fmt.Fprintf(a.ErrOut, "What the end of the move leaves to others could not be looked at: %s\n", oneLine(err.Error()))
	}
	if len(found) > 0 {
		fmt.Fprintf(a.Out, "What the end of the move leaves to you:\n%s", findings.Text(found, a.width()))
	}
}

// deserted refuses to finalize, BEFORE that is recorded, while a Service of clients would lose its last endpoint. Where this
// process does not reach the source, the one that carries the plan out sees that before it deletes anything.
func deserted(ctx context.Context, t *reach.Target, word plans.Assurance) error {
	if t.On[plans.Source] == nil || word.SourceGone || slices.Contains(word.Ignore, dns.IgnoreClients) {
		return nil
	}
	found, err := dns.Deserted(ctx, t.Plan, t.On[plans.Source])
	if err != nil || len(found) == 0 {
		return err
	}
	return reasons.Because(reasons.ClientsDeserted, errors.New(dns.Refusal(found)))
}

// taken says what a finalize takes away of the bridge, or nothing.
func taken(p *plans.Plan) string {
	var what []string
	if p.Names.Mode == plans.Bridge && p.Source.Namespace != p.Destination.Namespace {
		names := "the name " + p.Host(plans.Source, p.Start, p.Source.Namespace) + " is"
		if last := p.End() - 1; last > p.Start {
			names = fmt.Sprintf("the names %s to %s are", p.Host(plans.Source, p.Start, p.Source.Namespace), p.Host(plans.Source, last, p.Source.Namespace))
		}
		what = append(what, names+" answered no more")
	}
	if len(p.Names.Clients) > 0 {
		what = append(what, fmt.Sprintf("the pods leave the Services of namespace %s (%s)", p.Source.Namespace, strings.Join(p.Names.Clients, ", ")))
	}
	if len(what) == 0 {
		return ""
	}
	return " With that " + strings.Join(what, ", and ") + "; --keep-names keeps them."
}
