package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

func (a *app) getCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "get", Short: "List the plans of a namespace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.get(cmd.Context(), all) },
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the plans of all namespaces")
	a.outputFlag(cmd)
	return cmd
}

func (a *app) get(ctx context.Context, all bool) error {
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
	return a.show(output.Document{
		Value: output.List("Plan", list), Names: names,
		Text: func() string { return listTable(list, namespace, false) }, Wide: func() string { return listTable(list, namespace, true) },
	})
}

// listTable formats a list of plans as text. Below it are the reasons why some cannot be read.
func listTable(list []records.Listed, namespace string, wide bool) string {
	switch {
	case len(list) == 0 && namespace == "":
		return "no plans in any namespace\n"
	case len(list) == 0:
		return fmt.Sprintf("no plans in namespace %q\n", namespace)
	}
	rows, below := [][]string{{"NAMESPACE", "NAME", "STATE", "SOURCE", "DESTINATION"}}, ""
	for _, l := range list {
		rows = append(rows, []string{l.Namespace, l.Name, l.State, orUnknown(l.Source), orUnknown(l.Destination)})
		if l.Reason != "" {
			below += fmt.Sprintf("%s/%s: %s\n", l.Namespace, l.Name, oneLine(l.Reason))
		}
	}
	if wide {
		rows[0] = append(rows[0], "MAX-UNAVAILABLE", "HOLDER", "REASON")
		for k, l := range list {
			rows[k+1] = append(rows[k+1], cmp.Or(l.MaxUnavailable, "?"), cmp.Or(l.Holder, "-"), cmp.Or(string(l.ReasonID), "-"))
		}
	}
	return output.Table(rows) + below
}

func orUnknown(ref *plans.Ref) string {
	if ref == nil {
		return "?"
	}
	return ref.String()
}
