package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

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
	return a.print(list, func() string { return listTable(list, namespace) })
}

// listTable formats a list of plans as text. Below it are the reasons why some cannot be read.
func listTable(list []records.Listed, namespace string) string {
	switch {
	case len(list) == 0 && namespace == "":
		return "no plans in any namespace\n"
	case len(list) == 0:
		return fmt.Sprintf("no plans in namespace %q\n", namespace)
	}
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tSTATE\tSOURCE\tDESTINATION")
	for _, l := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.Namespace, l.Name, l.State, orUnknown(l.Source), orUnknown(l.Destination))
	}
	_ = w.Flush() // into memory
	for _, l := range list {
		if l.Reason != "" {
			fmt.Fprintf(&b, "%s/%s: %s\n", l.Namespace, l.Name, oneLine(l.Reason))
		}
	}
	return b.String()
}

func orUnknown(ref *plans.Ref) string {
	if ref == nil {
		return "?"
	}
	return ref.String()
}
