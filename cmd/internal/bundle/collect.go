package bundle

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/verify"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// collection reads the parts of an archive.
type collection struct {
	target  *reach.Target
	pair    clusters.Pair
	redact  *Redactor
	archive Archive
	missing []string
}

// Collect reads everything about a plan. about is the version of the program, in words.
func Collect(ctx context.Context, t *reach.Target, about string, now func() time.Time) Archive {
	c := &collection{target: t, pair: clusters.Pair{Plan: t.Plan, On: t.On}, redact: NewRedactor(), archive: Archive{}}
	c.put("plan.yaml", t.Plan, nil)
	j, err := t.Journal(ctx, false)
	c.put("journal.yaml", j, err)
	c.home(ctx)
	v, err := engine.Status(ctx, t.Plan, t.Store, t.On, t.Lost, now, t.Command)
	c.put("status.yaml", v, err)
	c.versions(ctx, about, now)
	for _, side := range plans.Sides() {
		if err := t.Lost[side]; err != nil {
			c.note(string(side), err)
			continue
		}
		c.side(ctx, side, j)
	}
	if len(t.Lost) == 0 && j != nil {
		c.answers(ctx, j, now)
	}
	c.archive["README.txt"] = []byte(readme)
	if len(c.missing) > 0 {
		slices.Sort(c.missing)
		c.archive["not-read.txt"] = []byte(strings.Join(c.missing, "\n") + "\n")
	}
	return c.archive
}

const readme = `This archive was written by "stsmigrate debug". It has what is stored about one plan, and the objects of the plan
as they are now: sets, pods, claims, volumes, budgets, Leases, Events and the answers of the checks.

No Secret was read. "(left out)" stands for values of environment variables, commands and arguments, contents of
ConfigMaps, patches, headers, what gates expect and are told, attributes of volumes and of their attachments,
options of mounts, the last words of containers, and annotations of other programs. What looks like a credential
in a message is left out too. Names of objects, namespaces, nodes and disks are in it: look through it before
you send it to anybody.

not-read.txt, if there is one, lists what could not be read, and why.
`

// put adds a document, or notes why there is none.
func (c *collection) put(name string, v any, err error) {
	if err != nil {
		c.note(name, err)
		return
	}
	raw, err := c.redact.Redact(v)
	if err != nil {
		c.note(name, err)
		return
	}
	c.archive[name] = raw
}

// note records what could not be read.
func (c *collection) note(name string, err error) {
	c.missing = append(c.missing, name+": "+c.redact.Scrubbed(plans.Line(err.Error())))
}

// home reads what is stored beside plan and journal.
func (c *collection) home(ctx context.Context) {
	h := c.target.Home
	d, err := records.ReadDeclared(ctx, h.Client, h.Namespace, c.target.Plan.Name)
	switch {
	case err != nil:
		c.note("home/declaration.yaml", err)
	case d != nil:
		c.put("home/declaration.yaml", d.Object, nil)
	}
	var leases coordinationv1.LeaseList
	err = h.Client.List(ctx, &leases, client.InNamespace(h.Namespace))
	c.put("home/leases.yaml", leases.Items, err)
	c.events(ctx, "home/events.yaml", h.Client, h.Namespace, func(name string) bool {
		return name == c.target.Plan.Name || strings.HasPrefix(name, records.RecordName(c.target.Plan.Name))
	})
}

// versions asks both API servers for their version.
func (c *collection) versions(ctx context.Context, about string, now func() time.Time) {
	out := map[string]any{"program": about, "collected": now().UTC().Format(time.RFC3339), "whenPlanned": c.target.Plan.Versions}
	servers, err := preflight.Versions(ctx, c.pair)
	if err != nil {
		c.note("versions of the API servers", err)
	}
	out["servers"] = servers
	c.put("versions.yaml", out, nil)
}

// answers runs the checks for a plan that has not begun, and else compares the clusters with its journal.
func (c *collection) answers(ctx context.Context, j *journal.Journal, now func() time.Time) {
	if j.Begun == 0 && !j.Ended() {
		report, err := preflight.Check(ctx, c.target.Plan, c.target.On, j, check.Caller{Flags: c.target.Ends.Flags()})
		c.put("checks.yaml", report, err)
		return
	}
	report, err := verify.Plan(ctx, c.pair, c.target.Store, now)
	c.put("verify.yaml", report, err)
}

// side reads the objects of the plan on one side.
func (c *collection) side(ctx context.Context, side plans.Side, j *journal.Journal) {
	p, on, folder := c.target.Plan, c.target.On[side], string(side)+"/"
	ref := p.On(side)
	set, err := c.pair.Set(ctx, side)
	c.put(folder+"set.yaml", set, err)
	var pods corev1.PodList
	err = on.List(ctx, &pods, client.InNamespace(ref.Namespace))
	mine := slices.DeleteFunc(pods.Items, func(o corev1.Pod) bool { return !c.ofPlan(side, o.Name) })
	c.put(folder+"pods.yaml", mine, err)
	volumes := c.claims(ctx, side, mine)
	if j != nil && j.Flight != nil {
		for _, v := range j.Flight.Volumes {
			volumes = append(volumes, v.Name)
		}
	}
	slices.Sort(volumes)
	c.volumes(ctx, side, slices.Compact(volumes))
	var budgets policyv1.PodDisruptionBudgetList
	err = on.List(ctx, &budgets, client.InNamespace(ref.Namespace))
	c.put(folder+"budgets.yaml", budgets.Items, err)
	c.events(ctx, folder+"events.yaml", on, ref.Namespace, func(name string) bool { return c.ofPlan(side, name) })
}

// ofPlan reports whether an object of a side's namespace belongs to the plan, by its name.
func (c *collection) ofPlan(side plans.Side, name string) bool {
	p := c.target.Plan
	if budget, _ := p.BudgetOn(side); name == p.On(side).Name || name == budget {
		return true
	}
	for o := range p.Ordinals().All() {
		if name == p.Pod(side, o) || slices.ContainsFunc(p.Claims, func(m plans.ClaimMove) bool { return name == p.ClaimName(side, m.Template, o) }) {
			return true
		}
	}
	return slices.ContainsFunc(p.Shared, func(s plans.SharedVolume) bool { return name == s.Claim })
}

// claims reads the claims of a side, and those that its pods mount. It returns the names of their volumes.
func (c *collection) claims(ctx context.Context, side plans.Side, pods []corev1.Pod) (volumes []string) {
	var claims corev1.PersistentVolumeClaimList
	err := c.target.On[side].List(ctx, &claims, client.InNamespace(c.target.Plan.On(side).Namespace))
	mine := slices.DeleteFunc(claims.Items, func(o corev1.PersistentVolumeClaim) bool {
		return !c.ofPlan(side, o.Name) && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return storage.Mounts(&p, o.Name) })
	})
	c.put(string(side)+"/claims.yaml", mine, err)
	for _, o := range mine {
		if o.Spec.VolumeName != "" {
			volumes = append(volumes, o.Spec.VolumeName)
		}
	}
	return volumes
}

// volumes reads volumes by their names, and where they are attached.
func (c *collection) volumes(ctx context.Context, side plans.Side, names []string) {
	on, folder := c.target.On[side], string(side)+"/"
	var found []*corev1.PersistentVolume
	for _, name := range names {
		pv, err := clusters.Get[corev1.PersistentVolume](ctx, on, "", name, "the "+string(side))
		if err != nil {
			c.note(folder+"volumes.yaml, "+name, err)
		}
		if pv != nil {
			found = append(found, pv)
		}
	}
	c.put(folder+"volumes.yaml", found, nil)
	var attached storagev1.VolumeAttachmentList
	err := on.List(ctx, &attached)
	mine := slices.DeleteFunc(attached.Items, func(a storagev1.VolumeAttachment) bool {
		return a.Spec.Source.PersistentVolumeName == nil || !slices.Contains(names, *a.Spec.Source.PersistentVolumeName)
	})
	c.put(folder+"attachments.yaml", mine, err)
}

// events reads the Events about the objects of a namespace that are chosen by name, the latest last.
func (c *collection) events(ctx context.Context, name string, on client.Client, namespace string, about func(string) bool) {
	var all corev1.EventList
	if err := on.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		c.note(name, err)
		return
	}
	mine := slices.DeleteFunc(all.Items, func(e corev1.Event) bool { return !about(e.InvolvedObject.Name) })
	slices.SortStableFunc(mine, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	c.put(name, mine, nil)
}
