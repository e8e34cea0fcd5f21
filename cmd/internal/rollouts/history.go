package rollouts

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/rollout"
	"github.com/stsmigrate/stsmigrate/plans"
)

// History returns the command that lists revisions.
func (c *Commands) History() *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use: "history SET", Short: "List the revisions of a StatefulSet, or of stss/SET",
		Args: program.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.Check(form); err != nil {
				return err
			}
			h, set, err := c.history(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list := revisions{APIVersion: plans.APIVersion, Kind: "RevisionList", Set: set, Items: []revision{}}
			names := []string{}
			for _, r := range h.Revisions {
				list.Items, names = append(list.Items, revision{r.Number, r.Name, r.Pods, r.Cause}), append(names, "controllerrevision.apps/"+r.Name)
			}
			return output.Print(c.Out, form, output.Document{Value: list, Text: list.table, Names: names})
		},
	}
	cmd.Flags().StringVarP(&form, "output", "o", "", output.Forms)
	return cmd
}

// revisions is what programs read of the revisions of a set.
type revisions struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Set        plans.Ref  `json:"set"`
	Items      []revision `json:"items"`
}

type revision struct {
	Revision    int64  `json:"revision"`
	Name        string `json:"name"`
	Pods        int    `json:"pods"`
	ChangeCause string `json:"changeCause,omitempty"`
}

func (l revisions) table() string {
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "REVISION\tNAME\tPODS\tCHANGE-CAUSE")
	for _, r := range l.Items {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\n", r.Revision, r.Name, r.Pods, plans.Line(r.ChangeCause))
	}
	_ = w.Flush() // into memory
	return b.String()
}

// history reads the revisions of the set that the user has typed.
func (c *Commands) history(ctx context.Context, typed string) (*rollout.History, plans.Ref, error) {
	at, set, err := c.Typed(typed)
	if err != nil {
		return nil, set, err
	}
	h, err := rollout.ReadHistory(ctx, at.Client, set)
	return h, set, err
}
