package live

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/stsmigrate/stsmigrate/cmd/internal/output"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// WatchList calls each for every plan that has changed since the list, until ctx ends.
func WatchList(ctx context.Context, home *reach.End, namespace string, list []records.Listed, now func() time.Time, complain func(error), each func(records.Listed) error) error {
	wake := clusters.NewChangeSignal()
	wake.WatchRecords(ctx, home.Watches, namespace)
	return Poll{Wake: wake.C(), Complain: complain}.Follow(ctx, func(ctx context.Context) (bool, error) {
		next, err := records.List(ctx, home.Client, namespace, now)
		if err != nil {
			return false, err
		}
		for _, l := range Changed(list, next) {
			if err := each(l); err != nil {
				return true, err
			}
		}
		list = next
		return false, nil
	})
}

// Changed returns the plans that have changed from one list to the next, and those that are gone.
func Changed(before, after []records.Listed) []records.Listed {
	was, out := map[string]records.Listed{}, []records.Listed{}
	for _, l := range before {
		was[l.Namespace+"/"+l.Name] = l
	}
	for _, l := range after {
		key := l.Namespace + "/" + l.Name
		if old, known := was[key]; !known || old.State != l.State || old.Reason != l.Reason || old.Moved != l.Moved {
			out = append(out, l)
		}
		delete(was, key)
	}
	for _, l := range before {
		if old, left := was[l.Namespace+"/"+l.Name]; left {
			old.State = plans.StateGone
			out = append(out, old)
		}
	}
	return out
}

// ListDocument returns a list of plans as a document.
func ListDocument(list []records.Listed, where, namespace string, now time.Time) output.Document {
	d := output.Document{
		Value: output.List("Plan", list), Names: []string{},
		Text: func() string { return List(list, where, namespace, now, false) }, Wide: func() string { return List(list, where, namespace, now, true) },
	}
	for _, l := range list {
		d.Names = append(d.Names, "plan/"+l.Name)
	}
	return d
}

// RowDocument returns one plan of a list that is watched as a document.
func RowDocument(l records.Listed, now time.Time) output.Document {
	return output.Document{
		Value: l, Names: []string{"plan/" + l.Name},
		Text: func() string { return Row(l, now, false) }, Wide: func() string { return Row(l, now, true) },
	}
}

// List formats a list of plans as text. where names the cluster that was looked at. Below it are the reasons why some cannot be read.
func List(list []records.Listed, where, namespace string, now time.Time, wide bool) string {
	switch {
	case len(list) == 0 && namespace == "":
		return fmt.Sprintf("no plans in any namespace of %s; %s\n", where, records.Kept)
	case len(list) == 0:
		return fmt.Sprintf("no plans in namespace %q of %s; %s\n", namespace, where, records.Kept)
	}
	rows, below := [][]string{{"NAMESPACE", "NAME", "STATE", "PROGRESS", "AGE", "SOURCE", "DESTINATION"}}, ""
	if wide {
		rows[0] = append(rows[0], "MAX-UNAVAILABLE", "HOLDER", "REASON")
	}
	for _, l := range list {
		rows = append(rows, cells(l, now, wide))
		if l.Reason != "" {
			below += fmt.Sprintf("%s/%s: %s\n", l.Namespace, l.Name, plans.Line(l.Reason))
		}
	}
	return output.Table(rows) + below
}

// Row formats a plan as a line below a list.
func Row(l records.Listed, now time.Time, wide bool) string {
	return strings.Join(cells(l, now, wide), "   ") + "\n"
}

func cells(l records.Listed, now time.Time, wide bool) []string {
	progress, age := "?", "-"
	if l.State != plans.StateUnreadable && l.Ordinals > 0 {
		progress = fmt.Sprintf("%d of %d", l.Moved, l.Ordinals)
	}
	if l.Begun != nil {
		age = duration.HumanDuration(now.Sub(l.Begun.Time))
	}
	out := []string{l.Namespace, l.Name, string(l.State), progress, age, orUnknown(l.Source), orUnknown(l.Destination)}
	if wide {
		out = append(out, cmp.Or(l.MaxUnavailable, "?"), cmp.Or(l.Holder, "-"), cmp.Or(string(l.ReasonID), "-"))
	}
	return out
}

func orUnknown(ref *plans.Ref) string {
	if ref == nil {
		return "?"
	}
	return ref.String()
}
