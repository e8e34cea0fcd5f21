package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/records"
)

func (a *app) getCommand() *cobra.Command {
	var all, watch bool
	cmd := &cobra.Command{
		Use: "get", Short: "List the plans of a namespace", Args: program.NoArgument,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.get(cmd.Context(), all, watch) },
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the plans of all namespaces")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "then print each plan that changes, until the command is stopped")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) get(ctx context.Context, all, watch bool) error {
	if err := a.knownOutput(); err != nil {
		return err
	}
	home, err := a.reach.Home()
	if err != nil {
		return err
	}
	namespace := home.Namespace
	if all {
		namespace = ""
	}
	list, err := records.List(ctx, home.Client, namespace, a.now)
	if err != nil {
		return err
	}
	names := []string{}
	for _, l := range list {
		names = append(names, "plan/"+l.Name)
	}
	err = a.show(output.Document{
		Value: output.List("Plan", list), Names: names,
		Text: func() string { return live.List(list, home.Name(), namespace, false) }, Wide: func() string { return live.List(list, home.Name(), namespace, true) },
	})
	if err != nil || !watch {
		return err
	}
	return live.WatchList(ctx, home, namespace, list, a.now, a.complain, func(l records.Listed) error {
		return a.show(output.Document{
			Value: l, Names: []string{"plan/" + l.Name},
			Text: func() string { return live.Row(l, false) }, Wide: func() string { return live.Row(l, true) },
		})
	})
}
