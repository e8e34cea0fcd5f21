// Package complete completes what users type: names of plans, sets, contexts, namespaces, checks and reasons. Whatever it
// needs a cluster for, it gives up after a few seconds, and completes nothing.
package complete

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/explain"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// patience is how long a shell waits for a cluster.
const patience = 3 * time.Second

// source returns what a word may become. files reports that it may also be a file.
type source func(ctx context.Context) (words []string, files bool)

// Wire gives every command of a program the completion of its argument and of its flags.
func Wire(root *cobra.Command, r *reach.Flags, now func() time.Time) {
	c := completer{r, now}
	flags := c.flags()
	c.wire(root, flags)
	for _, name := range keys(flags) {
		if root.PersistentFlags().Lookup(name) != nil {
			_ = root.RegisterFlagCompletionFunc(name, c.function(flags[name])) // each flag once
		}
	}
}

type completer struct {
	reach *reach.Flags
	now   func() time.Time
}

func (c completer) wire(cmd *cobra.Command, flags map[string]source) {
	_, argument, _ := strings.Cut(cmd.Use, " ")
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = c.firstOnly(c.argument(argument))
	}
	for _, name := range keys(flags) {
		if cmd.HasParent() && cmd.LocalNonPersistentFlags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, c.function(flags[name])) // each flag once
		}
	}
	for _, below := range cmd.Commands() {
		c.wire(below, flags)
	}
}

// argument returns the completion of the argument that a command's usage names.
func (c completer) argument(usage string) source {
	switch {
	case strings.Contains(usage, "PLAN") && strings.Contains(usage, "FILE"):
		return func(ctx context.Context) ([]string, bool) { words, _ := c.plans(ctx); return words, true }
	case strings.Contains(usage, "PLAN.yaml"):
		return func(ctx context.Context) ([]string, bool) { words, _ := c.sets(ctx); return words, true }
	case strings.Contains(usage, "PLAN"):
		return c.plans
	case strings.Contains(usage, "SET"):
		return c.sets
	case strings.Contains(usage, "REASON"):
		return reasonsAndChecks
	}
	return words()
}

// flags returns the completion of flags by their names. All others complete files.
func (c completer) flags() map[string]source {
	out := map[string]source{
		"output": words("wide", "name", "json", "yaml", "jsonpath=", "go-template=", "custom-columns="),
		"names":  words("bridge", "mcs", "none"), "to-kind": words("sts", "stss"), "side": words("source", "destination"),
		"direction": words("move", "abort", "finalize"), "dry-run": words("none", "client", "server"), "events": words("json", "text"),
		"ignore": func(context.Context) ([]string, bool) { return ignorable(), false },
	}
	for _, prefix := range []string{"", "to-", "home-"} {
		out[prefix+"context"] = func(context.Context) ([]string, bool) { return c.reach.Contexts(prefix), false }
		out[prefix+"namespace"] = func(ctx context.Context) ([]string, bool) { return c.namespaces(ctx, prefix), false }
	}
	return out
}

func (c completer) plans(ctx context.Context) ([]string, bool) {
	home, err := c.reach.Home()
	if err != nil {
		return nil, false
	}
	list, err := records.List(ctx, home.Client, home.Namespace, c.now)
	if err != nil {
		return nil, false
	}
	var out, here []string
	for _, l := range list {
		out, here = append(out, l.Name+"\t"+string(l.State)), append(here, l.Name)
	}
	for _, name := range home.Marks(ctx) { // its record is elsewhere, and commands find it from here
		if !slices.Contains(here, name) {
			out = append(out, name+"\tmarks a set")
		}
	}
	return out, false
}

func (c completer) sets(ctx context.Context) ([]string, bool) {
	at, err := c.reach.Single()
	if err != nil {
		return nil, false
	}
	var out []string
	var native appsv1.StatefulSetList
	if at.Client.List(ctx, &native, client.InNamespace(at.Namespace)) == nil {
		for _, s := range native.Items {
			out = append(out, s.Name)
		}
	}
	var slices v1alpha1.StatefulSetSliceList
	if at.Client.List(ctx, &slices, client.InNamespace(at.Namespace)) == nil {
		for _, s := range slices.Items {
			out = append(out, "stss/"+s.Name)
		}
	}
	return out, false
}

func (c completer) namespaces(ctx context.Context, prefix string) []string {
	open := c.reach.Single
	if prefix != "" {
		open = c.reach.Home
	}
	at, err := open()
	if err != nil {
		return nil
	}
	var list corev1.NamespaceList
	if at.Client.List(ctx, &list) != nil {
		return nil
	}
	var out []string
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return out
}

func ignorable() []string {
	var out []string
	for _, d := range preflight.Described() {
		if d.Ignorable {
			out = append(out, d.Name+"\t"+d.Wants)
		}
	}
	return out
}

func reasonsAndChecks(context.Context) ([]string, bool) {
	all, err := explain.All()
	if err != nil {
		return nil, false
	}
	return all.Names(), false
}

func words(all ...string) source {
	return func(context.Context) ([]string, bool) { return all, false }
}

// firstOnly completes the first argument and no other.
func (c completer) firstOnly(of source) cobra.CompletionFunc {
	complete := c.function(of)
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, begun)
	}
}

// function returns a completion as cobra calls it. In a list of words, the last one is completed.
func (c completer) function(of source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), patience)
		defer cancel()
		c.reach.Ended = ctx.Done()
		all, files := of(ctx)
		before, last := "", begun
		if k := strings.LastIndex(begun, ","); k >= 0 {
			before, last = begun[:k+1], begun[k+1:]
		}
		var out []string
		for _, word := range all {
			if strings.HasPrefix(word, last) {
				out = append(out, before+word)
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		switch {
		case files:
			directive = cobra.ShellCompDirectiveDefault
		case slices.ContainsFunc(out, func(s string) bool { return strings.HasSuffix(s, "=") }):
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return out, directive
	}
}

func keys(m map[string]source) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
