package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// findings holds the observations of the demo. None of them comes from stsmigrate itself.
type findings struct {
	set           fixture.Set
	before, after map[fixture.Disk]string // volume handles
	report        *witness.Report
	destroyed     []string // handles
	sourceGone    bool
	pods          int // ready on the destination
	killed        int
	wanted        int // the intended number of kills
}

// lookAround reads the state of the clusters and of the storage after the move.
func (s *show) lookAround(ctx context.Context, f *findings) (err error) {
	if f.after, err = s.set.Handles(ctx, s.bed.West.Config()); err != nil {
		return err
	}
	if f.destroyed, err = s.bed.Backend.Destroyed(); err != nil {
		return err
	}
	east, err := kubernetes.NewForConfig(s.bed.East.Config())
	if err != nil {
		return err
	}
	_, err = east.AppsV1().StatefulSets(s.set.Namespace).Get(ctx, fixture.Name, metav1.GetOptions{})
	if f.sourceGone = apierrors.IsNotFound(err); err != nil && !f.sourceGone {
		return err
	}
	west, err := kubernetes.NewForConfig(s.bed.West.Config())
	if err != nil {
		return err
	}
	pods, err := west.CoreV1().Pods(s.set.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if markOf(&pods.Items[i]) == ready {
			f.pods++
		}
	}
	return nil
}

// String returns the table that is printed at the end.
func (f *findings) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ORDINAL\tTEMPLATE\tVOLUME BEFORE (east)\tVOLUME AFTER (west)\tRESULT")
	for _, d := range f.set.Disks() {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", d.Ordinal, d.Template, f.before[d], f.after[d], f.compare(d))
	}
	_ = w.Flush() // into memory
	fmt.Fprintln(&b)
	for _, row := range []struct {
		what  string
		shown bool
		value any
	}{
		{"times apply was killed", f.wanted > 0, f.killed},
		{"most ordinals unavailable at once", true, fmt.Sprintf("%d (d = %d)", f.report.MaxUnavailable, budget)},
		{"violations the witness saw", true, len(f.report.Violations)},
		{"volumes destroyed", true, len(f.destroyed)},
	} {
		if row.shown {
			fmt.Fprintf(w, "%s\t%v\n", row.what, row.value)
		}
	}
	_ = w.Flush() // into memory
	return strings.TrimRight(b.String(), "\n")
}

func (f *findings) compare(d fixture.Disk) string {
	switch before, after := f.before[d], f.after[d]; {
	case before == "" || after == "":
		return "MISSING"
	case before != after:
		return "DIFFERENT"
	}
	return "same"
}

// verdict returns nil if every promise was kept, and otherwise an error that lists, in one
// sentence, each one that was not.
func (f *findings) verdict() error {
	var wrong []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	for _, d := range f.set.Disks() {
		verdict := f.compare(d)
		add(verdict != "same", "the volume of claim template %s of ordinal %d is %s", d.Template, d.Ordinal, strings.ToLower(verdict))
	}
	add(f.report.MaxUnavailable > budget, "%d ordinals were unavailable at once", f.report.MaxUnavailable)
	for _, v := range f.report.Violations {
		add(true, "the witness saw %s", v)
	}
	add(len(f.destroyed) > 0, "volumes were destroyed: %s", strings.Join(f.destroyed, ", "))
	add(!f.sourceGone, "the source set is still there")
	add(f.pods != int(f.set.Replicas), "%d pods are ready in west, not %d", f.pods, f.set.Replicas)
	add(f.killed != f.wanted, "apply finished after %d of %d kills; try another -seed", f.killed, f.wanted)
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}
