package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/records"
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
	one := func(l records.Listed) error {
		if a.output == "json" {
			return json.NewEncoder(a.Out).Encode(l) // one line
		}
		return a.further(live.RowDocument(l, a.now()))
	}
	if !watch || a.output != "json" {
		err = a.show(live.ListDocument(list, home.Name(), namespace, a.now()))
	} else {
		for _, l := range list {
			err = errors.Join(err, one(l))
		}
	}
	if err != nil || !watch {
		return err
	}
	return live.WatchList(ctx, home, namespace, list, a.now, a.complain, one)
}
