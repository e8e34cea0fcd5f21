package copies

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Difference is an object that pods name and that is not the same on both sides, although it was when the plan began.
type Difference struct {
	plans.Dependency

	// Fields are those that differ. A key is named, and its value is not.
	Fields []string
	on     map[plans.Side]client.Object
	last   map[plans.Side]write
	plan   *plans.Plan
}

// write is the last write of the fields that differ, as the object itself has it.
type write struct {
	by string
	at time.Time
	// copied reports that the plan made the object, and that no other writer has written these fields since.
	copied bool
}

// Unread is an object that could not be compared, since the user may not read it on a side.
type Unread struct {
	plans.Dependency

	Side plans.Side
	Err  error
}

// Compared is what a comparison has found.
type Compared struct {
	Differ []Difference
	Unread []Unread
	// Alike is how many objects are the same on both sides.
	Alike int
}

// Compare reads both sides of what pods name. An object that a side lacks is left to the check dependencies. What is
// made by its own maker on each side (Required) may differ, and so may a twin.
func Compare(ctx context.Context, w clusters.Pair) (out Compared, err error) {
	for _, d := range w.Plan.Dependencies {
		if d.Required != "" || d.Twin != nil {
			continue
		}
		on := map[plans.Side]client.Object{}
		for _, side := range plans.Sides() {
			o, err := w.Dependency(ctx, side, d)
			switch {
			case apierrors.IsForbidden(err):
				out.Unread = append(out.Unread, Unread{d, side, err})
			case err != nil:
				return out, err
			case o != nil:
				on[side] = o
			}
		}
		if len(on) < 2 {
			continue
		}
		if f := Between(w.Plan, d, on[plans.Source], on[plans.Destination]); f != nil {
			out.Differ = append(out.Differ, *f)
		} else {
			out.Alike++
		}
	}
	return out, nil
}

// Unseen says what could not be compared, or "".
func (c Compared) Unseen() string {
	var out []string
	for _, u := range c.Unread {
		out = append(out, fmt.Sprintf("%s of the %s", u.Dependency, u.Side))
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("not compared, since it may not be read here: %s (%v)", strings.Join(out, ", "), c.Unread[0].Err)
}

// Told says in one line for each object what is not the same on both sides any more, and what could not be compared.
func Told(ctx context.Context, w clusters.Pair) (out []string) {
	compared, err := Compare(ctx, w)
	if err != nil {
		return []string{plans.Line("not compared: " + err.Error())}
	}
	for _, f := range compared.Differ {
		out = append(out, plans.Line(f.Words()))
	}
	if why := compared.Unseen(); why != "" {
		out = append(out, plans.Line(why))
	}
	return out
}

// Between compares an original with its copy, and returns nil where pods would notice no difference.
func Between(p *plans.Plan, d plans.Dependency, from, to client.Object) *Difference {
	fields := differing(p, from, to)
	if len(fields) == 0 {
		return nil
	}
	f := &Difference{Dependency: d, plan: p, on: map[plans.Side]client.Object{plans.Source: from, plans.Destination: to}, last: map[plans.Side]write{}}
	for _, x := range fields {
		f.Fields = append(f.Fields, x.name)
	}
	for side, o := range f.on {
		f.last[side] = lastWrite(p, side, o, fields)
	}
	return f
}

// field is a field that differs, and where it is in the managed fields of an object.
type field struct {
	name string
	path []string
}

func differing(p *plans.Plan, from, to client.Object) []field {
	switch a := from.(type) {
	case *corev1.ConfigMap:
		b, _ := to.(*corev1.ConfigMap)
		return append(keys("data", a.Data, b.Data), keys("binaryData", a.BinaryData, b.BinaryData)...)
	case *corev1.Secret:
		b, _ := to.(*corev1.Secret)
		out := keys("data", a.Data, b.Data)
		if a.Type != b.Type {
			out = append(out, field{"type", []string{"type"}})
		}
		return out
	case *corev1.ServiceAccount:
		b, _ := to.(*corev1.ServiceAccount)
		return accounts(a, b)
	case *corev1.Service:
		b, _ := to.(*corev1.Service)
		return services(p, a, b)
	}
	return nil
}

// keys returns the keys of two maps whose values are not the same.
func keys[V any](name string, a, b map[string]V) (out []field) {
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if v, there := b[k]; !there || !equality.Semantic.DeepEqual(a[k], v) {
			out = append(out, field{name + "[" + k + "]", []string{name, k}})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if _, there := a[k]; !there {
			out = append(out, field{name + "[" + k + "]", []string{name, k}})
		}
	}
	return out
}

// accounts compares what a user decides about an account. A pull secret that only the destination has is its cluster's:
// controllers add such to every account.
func accounts(a, b *corev1.ServiceAccount) (out []field) {
	for _, s := range pullSecrets(a) {
		if !slices.Contains(b.ImagePullSecrets, s) {
			out = append(out, field{"imagePullSecrets[" + s.Name + "]", []string{"imagePullSecrets"}})
		}
	}
	if !equality.Semantic.DeepEqual(a.AutomountServiceAccountToken, b.AutomountServiceAccountToken) {
		out = append(out, field{"automountServiceAccountToken", []string{"automountServiceAccountToken"}})
	}
	return out
}

// services compares what a user decides about a Service. A field that one side has alone counts only if a user of that side
// has written it: an API server of another version, and admission, give fields a default.
func services(p *plans.Plan, a, b *corev1.Service) (out []field) {
	from, to := specOf(p, a), specOf(p, b)
	names := slices.Concat(slices.Collect(maps.Keys(from)), slices.Collect(maps.Keys(to)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		here, hasHere := from[name]
		there, hasThere := to[name]
		path := []string{"spec", name}
		switch {
		case equality.Semantic.DeepEqual(here, there):
			continue
		case !hasThere && !users(a, path), !hasHere && !users(b, path):
			continue
		}
		out = append(out, field{"spec." + name, path})
	}
	return out
}

// users reports whether a user has written a field, or the object does not tell.
func users(o client.Object, path []string) bool {
	by := plans.Manager(o, path...)
	return by != "" && !ours(by) || len(o.GetManagedFields()) == 0
}

// ours reports whether a manager is this program.
func ours(manager string) bool { return strings.HasPrefix(manager, "stsmigrate") }

func specOf(p *plans.Plan, s *corev1.Service) map[string]any {
	spec := service(p, s.Spec)
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil // every ServiceSpec can be converted
	}
	return out
}

// lastWrite returns the newest write of any of the fields. Of a key that a side lacks, it is that of the whole map.
func lastWrite(p *plans.Plan, side plans.Side, o client.Object, fields []field) write {
	var out write
	for _, f := range fields {
		by, at := plans.Written(o, f.path...)
		if by == "" {
			by, at = plans.Written(o, f.path[:1]...)
		}
		if by != "" && (out.by == "" || at.After(out.at)) {
			out = write{by: by, at: at}
		}
	}
	s, stamped := plans.Stamped(o)
	out.copied = side == plans.Destination && stamped && s.Plan == p.ID && ours(out.by)
	return out
}

// Word is what a user says to let the pods start with what the other side has: the object, and eight digits for these two
// states of it and the side that the ordinals leave. It is made from names, UIDs and times of writes alone, so no value
// can be guessed by it. Where the objects do not tell when the fields were written, it is about these versions of them.
func (f Difference) Word(from plans.Side) string {
	what := []any{from, f.String(), f.Fields}
	for _, side := range plans.Sides() {
		o, last := f.on[side], f.last[side]
		state := last.by + " " + last.at.Format(time.RFC3339)
		if last.by == "" || last.at.IsZero() {
			state = o.GetResourceVersion()
		}
		what = append(what, o.GetUID(), state)
	}
	raw, _ := json.Marshal(what) // strings
	return fmt.Sprintf("%s:%.8x", f.String(), sha256.Sum256(raw))[:len(f.String())+9]
}

// Words says what differs, who has written it last on each side, and when.
func (f Difference) Words() string {
	const most = 4
	fields := f.Fields
	if len(fields) > most {
		fields = append(slices.Clone(fields[:most]), fmt.Sprintf("%d more", len(fields)-most))
	}
	verb := "differs"
	if len(f.Fields) > 1 {
		verb = "differ"
	}
	return fmt.Sprintf("%s: %s %s (%s; %s)%s", f, strings.Join(fields, ", "), verb, f.side(plans.Source), f.side(plans.Destination), f.newer())
}

// side says who has written the fields last on a side.
func (f Difference) side(side plans.Side) string {
	last := f.last[side]
	by := cmp.Or(last.by, "an unknown client")
	at := "at an unknown time"
	if !last.at.IsZero() {
		at = last.at.Format("2006-01-02 15:04:05 MST")
	}
	if last.copied {
		return fmt.Sprintf("on the %s as it was copied, %s", side, at)
	}
	return fmt.Sprintf("on the %s written by %s, %s", side, by, at)
}

// newer says which side has changed, as far as the objects tell.
func (f Difference) newer() string {
	source, destination := f.last[plans.Source], f.last[plans.Destination]
	switch {
	case destination.copied:
		return ": the source's has changed since it was copied"
	case source.at.IsZero() || destination.at.IsZero() || source.at.Equal(destination.at):
		return ""
	case source.at.After(destination.at):
		return ": the source's is newer"
	}
	return ": the destination's is newer"
}

// Align returns the command that gives the object of a side what that of the other one has. No value is in it: one kubectl
// hands it to the other.
func (f Difference) Align(to plans.Side) string {
	kind := strings.ToLower(f.Kind)
	target := fmt.Sprintf("%s %%s %s %s", f.kubectl(to), kind, f.Name)
	if f.Kind != "Secret" && f.Kind != "ConfigMap" {
		return "`" + fmt.Sprintf(target, "edit") + "`"
	}
	if f.fixed(to) {
		return fmt.Sprintf("`%s`, and make it again as it is on the %s, since it cannot be changed", fmt.Sprintf(target, "delete"), to.Other())
	}
	var ops string
	for _, name := range f.maps() {
		ops += fmt.Sprintf(`-{"\n"} op: add{"\n"} path: /%s{"\n"} value: {.%s}{"\n"}`, name, name)
	}
	return fmt.Sprintf("`%s get %s %s -o jsonpath='%s' | %s --type json --patch-file /dev/stdin`", f.kubectl(to.Other()), kind, f.Name, ops, fmt.Sprintf(target, "patch"))
}

// maps returns the maps whose keys differ.
func (f Difference) maps() (out []string) {
	for _, name := range f.Fields {
		name, _, _ = strings.Cut(name, "[")
		out = append(out, name)
	}
	return slices.Compact(out)
}

// fixed reports whether the API server changes nothing of the object.
func (f Difference) fixed(side plans.Side) bool {
	is := func(b *bool) bool { return b != nil && *b }
	switch o := f.on[side].(type) {
	case *corev1.ConfigMap:
		return is(o.Immutable)
	case *corev1.Secret:
		return is(o.Immutable) || slices.Contains(f.Fields, "type")
	}
	return false
}

// kubectl returns the beginning of a command line for a side. Contexts have the names that the maker of the plan gave them.
func (f Difference) kubectl(side plans.Side) string {
	at := f.plan.On(side)
	out := "kubectl"
	if !f.plan.OneCluster() && at.Context != "" {
		out += " --context " + at.Context
	}
	return out + " -n " + at.Namespace
}
