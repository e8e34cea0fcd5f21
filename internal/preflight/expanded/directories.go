package expanded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// SameDirectory refuses pods that would find another directory of their volume on the destination: an empty one, with the
// data of the ordinal beside it. A text that has the namespace in it does that, in the directory of a mount or in what
// the container is told of a path on that volume.
func SameDirectory(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	s, err := look(ctx, i)
	if err != nil {
		return nil, err
	}
	d := directories{sides: s, i: i, raw: map[plans.Side]*corev1.Pod{plans.Source: s.source(), plans.Destination: s.arriving()}, pods: map[plans.Side]*corev1.Pod{}}
	for side, pod := range d.raw {
		d.pods[side] = expansion.Expand(pod, s.at[side])
	}
	var out []check.Finding
	for _, l := range lists(d.pods[plans.Destination]) {
		for n, c := range l.of {
			was, there := containerOf(d.pods[plans.Source], l.field, c.Name)
			if !there {
				continue // a patch adds it
			}
			at := container{field: l.field, index: n, was: was, is: c}
			out = append(out, d.mounted(at)...)
			out = append(out, d.told(at)...)
			out = append(out, d.asAnother(at)...)
			out = append(out, d.scripts(at)...)
		}
	}
	return out, nil
}

// directories are the pods of both sides, as they are written and as they are expanded.
type directories struct {
	sides
	i         check.Inspection
	raw, pods map[plans.Side]*corev1.Pod
}

// container is one of the arriving pod, with that of the source's pod, both expanded.
type container struct {
	field   string
	index   int
	was, is corev1.Container
}

// moves reports whether a volume of the pods has data that moves, or that all ordinals share.
func (d directories) moves(volume string) bool {
	if slices.ContainsFunc(d.i.Plan.Claims, func(c plans.ClaimMove) bool { return c.Template == volume }) {
		return slices.ContainsFunc(d.i.Plan.Moved(), func(c plans.ClaimMove) bool { return c.Template == volume })
	}
	return slices.ContainsFunc(d.pods[plans.Destination].Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && v.PersistentVolumeClaim != nil
	})
}

// variables returns what the container gets as it is on a side.
func (d directories) variables(side plans.Side, c container) map[string]string {
	raw, _ := containerOf(d.raw[side], c.field, c.is.Name)
	return expansion.Variables(d.raw[side], raw, d.at[side])
}

// mounted finds the mounts whose directory differs.
func (d directories) mounted(c container) (out []check.Finding) {
	for _, is := range c.is.VolumeMounts {
		n := slices.IndexFunc(c.was.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == is.Name && m.MountPath == is.MountPath })
		if n < 0 || !d.moves(is.Name) {
			continue
		}
		was := c.was.VolumeMounts[n]
		from, to := cmp.Or(was.SubPathExpr, was.SubPath), cmp.Or(is.SubPathExpr, is.SubPath)
		where := fmt.Sprintf("spec.template.spec.%s[%s].volumeMounts[%s]", c.field, c.is.Name, is.MountPath)
		switch {
		case from != to:
			raw, _ := containerOf(d.raw[plans.Source], c.field, c.is.Name)
			expr := expansion.Settled(raw.VolumeMounts[n].SubPathExpr, d.variables(plans.Source, c), d.variables(plans.Destination, c))
			out = append(out, d.another(where+".subPathExpr", is.Name, from, to,
				fmt.Sprintf("spec: {template: {spec: {%s: [{name: %s, volumeMounts: [{name: %s, mountPath: %s, subPathExpr: %s}]}]}}}", c.field, c.is.Name, is.Name, is.MountPath, quoted(cmp.Or(expr, from)))))
		case ofNode(to):
			f := d.another(where+".subPathExpr", is.Name, from, "that of another node", "")
			f.Saw = fmt.Sprintf("the directory on volume %s has the name of the node in it (%s), and the pod comes to another one", is.Name, from)
			f.Remedy = "see to it that the pod finds its data: write a directory without the node's name, which every ordinal has, and move the files there first"
			if joined(d.i) {
				f.Level = check.Warn // as on any other day on which the pod is scheduled anew
			}
			out = append(out, f)
		}
	}
	return out
}

// ofNode reports whether a text has the name or the address of the node in it.
func ofNode(text string) bool {
	return strings.Contains(text, expansion.Node) || strings.Contains(text, expansion.Host)
}

// told finds what the container is told of a path on a volume that moves, where that path differs.
func (d directories) told(c container) (out []check.Finding) {
	where := fmt.Sprintf("spec.template.spec.%s[%s]", c.field, c.is.Name)
	for n, e := range c.is.Env {
		at := slices.IndexFunc(c.was.Env, func(o corev1.EnvVar) bool { return o.Name == e.Name })
		if at < 0 {
			continue
		}
		volume, from, to := d.onVolume(c, c.was.Env[at].Value, e.Value)
		if volume == "" {
			continue
		}
		raw, _ := containerOf(d.raw[plans.Destination], c.field, c.is.Name)
		value := cmp.Or(d.settled(c, raw.Env[n].Value), c.was.Env[at].Value)
		out = append(out, d.another(where+".env["+e.Name+"]", volume, from, to, envPatch(c.field, c.is.Name, raw.Env[n], value)))
	}
	for _, words := range []struct {
		field   string
		was, is []string
		raw     func(corev1.Container) []string
	}{
		{"command", c.was.Command, c.is.Command, func(c corev1.Container) []string { return c.Command }},
		{"args", c.was.Args, c.is.Args, func(c corev1.Container) []string { return c.Args }},
	} {
		for n := range min(len(words.was), len(words.is)) {
			volume, from, to := d.onVolume(c, expansion.Shell(words.was[n], d.variables(plans.Source, c)), expansion.Shell(words.is[n], d.variables(plans.Destination, c)))
			if volume == "" {
				continue
			}
			raw, _ := containerOf(d.raw[plans.Destination], c.field, c.is.Name)
			value := d.settled(c, expansion.Shell(words.raw(raw)[n], expansion.Other(d.variables(plans.Source, c), d.variables(plans.Destination, c))))
			out = append(out, d.another(fmt.Sprintf("%s.%s[%d]", where, words.field, n), volume, from, to,
				fmt.Sprintf("- {op: replace, path: /spec/template/spec/%s/%d/%s/%d, value: %s}", c.field, c.index, words.field, n, quoted(value))))
		}
	}
	return out
}

// settled returns a text that means on the destination what it means on the source.
func (d directories) settled(c container, text string) string {
	return expansion.Settled(text, d.variables(plans.Source, c), d.variables(plans.Destination, c))
}

// envPatch returns the patch that gives a variable a value of its own.
func envPatch(field, container string, e corev1.EnvVar, value string) string {
	instead := ""
	if e.ValueFrom != nil {
		instead = ", valueFrom: null"
	}
	return fmt.Sprintf("spec: {template: {spec: {%s: [{name: %s, env: [{name: %s, value: %s%s}]}]}}}", field, container, e.Name, quoted(value), instead)
}

// onVolume returns the first path of two texts that differs and is on a volume that moves, with that volume, or "".
func (d directories) onVolume(c container, was, is string) (volume, from, to string) {
	if was == is {
		return "", "", ""
	}
	before, after := paths(was), paths(is)
	for n := range min(len(before), len(after)) {
		if before[n] == after[n] {
			continue
		}
		for _, m := range c.is.VolumeMounts {
			under := strings.TrimSuffix(m.MountPath, "/") + "/"
			if d.moves(m.Name) && strings.HasPrefix(before[n]+"/", under) {
				return m.Name, before[n], after[n]
			}
		}
	}
	return "", "", ""
}

// paths returns the absolute paths in a text.
func paths(text string) (out []string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n=,;:'\"<>|&", r) }) {
		if strings.HasPrefix(word, "/") {
			out = append(out, word)
		}
	}
	return out
}

func (d directories) another(where, volume, from, to, patch string) check.Finding {
	return check.Finding{
		Object: d.i.Name(plans.Destination) + ": " + where,
		Saw:    fmt.Sprintf("%s finds directory %q of volume %s on the source and would start in %q on the destination, and so does every ordinal", d.source().Name, from, volume, to),
		Want:   "the same directory on both sides: the other one is empty, and the data stays beside it",
		Remedy: "keep the old directory, with --patch FILE where FILE has\n" + patch,
	}
}

// quoted returns a text as YAML in one line.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(b.String(), "\n")
}
