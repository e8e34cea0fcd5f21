package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Level says how a check came out.
type Level string

const (
	// Pass means: nothing to object to.
	Pass Level = "PASS"
	// Warn means: worth knowing; the move goes on.
	Warn Level = "WARN"
	// Fail means: nothing is written before it is mended.
	Fail Level = "FAIL"
)

// Finding is one thing that a check objects to: the object, what was seen, what was
// expected and what to do. A remedy of several lines begins with a sentence; what
// follows is there to be typed.
type Finding struct {
	Check string `json:"check"`
	// Level is Fail unless the check says Warn.
	Level  Level  `json:"level"`
	Object string `json:"object"`
	Saw    string `json:"saw"`
	Want   string `json:"want"`
	Remedy string `json:"remedy"`
	// Ignored says that the person who made the plan accepts it; Level is Warn then.
	Ignored bool `json:"ignored,omitempty"`
}

// String gives the finding in one line, without the lines of the remedy after its
// first.
func (f Finding) String() string {
	remedy, _, _ := strings.Cut(f.Remedy, "\n")
	return fmt.Sprintf("%s: %s: %s, expected %s; %s", f.Check, f.Object, f.Saw, f.Want, remedy)
}

// Result is how one check came out.
type Result struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// About is what the check wants, in words.
	About string `json:"about"`
	// Level is the worst of its findings.
	Level    Level     `json:"level"`
	Findings []Finding `json:"findings,omitempty"`
}

// Report is what all checks of a plan came to, in the order of the catalogue. Its JSON
// form is stable within an API version.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Plan       string    `json:"plan"`
	Source     plans.Ref `json:"source"`
	// Destination is where the set is to go.
	Destination plans.Ref `json:"destination"`
	Checks      []Result  `json:"checks"`
	// NotRun is how many checks were left out: without the right to look they would
	// only stumble.
	NotRun int `json:"notRun,omitempty"`
}

// Failed gives the findings that block, in the order of the report.
func (r *Report) Failed() []Finding { return r.findings(Fail) }

// Warned gives the findings that do not block, in the order of the report. Those that
// are ignored are not among them.
func (r *Report) Warned() []Finding { return r.findings(Warn) }

func (r *Report) findings(l Level) []Finding {
	var out []Finding
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if f.Level == l && !f.Ignored {
				out = append(out, f)
			}
		}
	}
	return out
}

// check is one entry of the catalogue. It never writes, except for requests that the
// API server only tries out (dry run).
type check struct {
	group, name string
	// about is what the check wants; remedy what to do in general. A finding is more
	// exact than either.
	about, remedy string
	// worst is the worst level that a finding of it has.
	worst Level
	// ignorable says that a person may go on in spite of it: a check that only warns,
	// or one of what would make a pod wait and could not harm it.
	ignorable bool
	// wave says that it is asked again before every wave: what may have changed
	// since, and what the looks of the engine would find too late or not at all.
	wave bool
	run  func(context.Context, inspection) ([]Finding, error)
}

// inspection is what the checks look at.
type inspection struct {
	world
	// now is what the plan would be made from today. Between two waves the sets are
	// all there is of it.
	now plans.Inputs
	// ordinals are those that the checks of single ordinals are about.
	ordinals plans.Slice
	// midway says that the plan is under way.
	midway bool
	// taken says that a process of this very plan has marked the sets already.
	taken bool
	notes *notes
}

// notes is what several checks of one inspection need to know, read once.
type notes struct {
	trials   once[struct{}, trial]
	shelves  once[plans.Side, shelf]
	volumes  once[int32, bindings]
	appliers once[struct{}, []applier]
}

// once keeps what was read. Who asks for what is being read waits for it.
type once[K comparable, V any] struct {
	lock  sync.Mutex
	known map[K]V
}

func (o *once[K, V]) get(key K, read func() (V, error)) (V, error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	v, known := o.known[key]
	if known {
		return v, nil
	}
	v, err := read()
	if err == nil {
		if o.known == nil {
			o.known = map[K]V{}
		}
		o.known[key] = v
	}
	return v, err
}

// bindings are the volumes of an ordinal, or why they cannot be named.
type bindings struct {
	volumes []plans.Volume
	why     string
}

func inspect(p *plans.Plan, on Clusters) inspection {
	return inspection{
		world: world{plan: p, on: on}, ordinals: plans.Slice{Start: p.Start, Replicas: p.Count},
		notes: &notes{},
	}
}

// name gives the set of a side in the words of a finding.
func (i inspection) name(s plans.Side) string { return "StatefulSet " + i.plan.On(s).String() }

// ours says whether an object carries the mark of this very plan.
func (i inspection) ours(o client.Object) bool {
	s, ok := plans.Stamped(o)
	return ok && i.taken && s.Plan == i.plan.ID
}

// each goes through the ordinals that are asked about, from the lowest.
func (i inspection) each(yield func(int32) bool) {
	for o := i.ordinals.Start; o < i.ordinals.Start+i.ordinals.Replicas; o++ {
		if !yield(o) {
			return
		}
	}
}

// sides are both sides in the order in which findings are reported.
func sides() []plans.Side { return []plans.Side{plans.Source, plans.Destination} }

// sets goes through the sets that exist.
func (i inspection) sets(yield func(plans.Side, *appsv1.StatefulSet) bool) {
	for _, side := range sides() {
		set := i.now.Set
		if side == plans.Destination {
			set = i.now.Existing
		}
		if set != nil && !yield(side, set) {
			return
		}
	}
}

// volumes reads which volumes the claims of an ordinal are bound to on the source.
func (i inspection) volumes(ctx context.Context, ordinal int32) (bindings, error) {
	return i.notes.volumes.get(ordinal, func() (bindings, error) {
		vols, why, err := storage.Volumes(ctx, i.plan, i.on, plans.Source, ordinal)
		return bindings{vols, why}, err
	})
}

// Check runs the whole catalogue and reports everything that it finds (not only the
// first). Nothing has been written when it returns. j is the journal of a stored plan of
// which nothing has been begun, or nil.
func Check(ctx context.Context, p *plans.Plan, on Clusters, j *plans.Journal) (*Report, error) {
	r := &Report{APIVersion: plans.APIVersion, Kind: "CheckReport", Plan: p.Name, Source: p.Source, Destination: p.Destination}
	i := inspect(p, on)
	i.taken = j != nil && j.Epoch > 0
	access, others := accessChecks(), lookingChecks()
	var err error
	if r.Checks, err = i.results(ctx, access); err != nil {
		return nil, err
	}
	if len(r.Failed()) > 0 {
		r.NotRun = len(others)
		return r, nil
	}
	if i.now, err = Survey(ctx, on, p.Source, p.Destination, p.MaxUnavailable, ""); err != nil {
		return nil, err
	}
	more, err := i.results(ctx, others)
	if err != nil {
		return nil, err
	}
	r.Checks = append(r.Checks, more...)
	return r, nil
}

// CheckWave asks again, before the given ordinals move, what can have changed since Check
// and would not be found, or be found too late, by the looks of the engine. on must be
// clients that may be used side by side, such as those of Connect. It gives
// what must be mended before they move: warnings have been given before the first
// write, and what the plan ignores is ignored here too. A plan that is being walked back
// or cleaned up has no such checks: the way out is never barred.
func CheckWave(ctx context.Context, p *plans.Plan, on Clusters, j *plans.Journal, ordinals plans.Slice) ([]Finding, error) {
	if j.Leg.Course != plans.Move {
		return nil, nil
	}
	i := inspect(p, on)
	i.ordinals, i.midway, i.taken = ordinals, true, true
	var err error
	if i.now.Set, err = i.set(ctx, plans.Source); err != nil {
		return nil, err
	}
	if i.now.Existing, err = i.set(ctx, plans.Destination); err != nil {
		return nil, err
	}
	if i.now.Set == nil || i.now.Existing == nil {
		return nil, nil // the next look says which of them is gone
	}
	again := slices.DeleteFunc(lookingChecks(), func(c check) bool { return !c.wave })
	results, err := i.results(ctx, again)
	if err != nil {
		return nil, err
	}
	return (&Report{Checks: results}).Failed(), nil
}

// atOnce is how many requests the checks send side by side, so that a distant API server
// does not make them long.
const atOnce = 8

// results runs checks side by side, and gives what they found in their order.
func (i inspection) results(ctx context.Context, checks []check) ([]Result, error) {
	out := make([]Result, len(checks))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for k, c := range checks {
		g.Go(func() error {
			found, err := c.run(ctx, i)
			if err != nil {
				return fmt.Errorf("check %s: %w", c.name, err)
			}
			out[k] = c.result(found, slices.Contains(i.plan.Ignored, c.name))
			return nil
		})
	}
	return out, g.Wait()
}

func (c check) result(found []Finding, ignored bool) Result {
	r := Result{Group: c.group, Name: c.name, About: c.about, Level: Pass}
	for _, f := range found {
		f.Check = c.name
		if f.Level == "" {
			f.Level = Fail
		}
		if ignored && c.ignorable {
			f.Level, f.Ignored = Warn, true
		}
		if r.Level != Fail {
			r.Level = f.Level
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

// Ignorable refuses names of checks that a person may not ignore, and gives the rest
// sorted and without repetition, as a plan keeps them.
func Ignorable(names []string) ([]string, error) {
	may := map[string]bool{}
	var list []string
	for _, c := range catalogue() {
		may[c.name] = c.ignorable
		if c.ignorable {
			list = append(list, c.name)
		}
	}
	for _, n := range names {
		ignorable, known := may[n]
		switch {
		case !known:
			return nil, fmt.Errorf("there is no check %q; those that can be ignored: %s", n, strings.Join(list, ", "))
		case !ignorable:
			return nil, fmt.Errorf("check %s cannot be ignored: what it looks for would break the move; those that can: %s", n, strings.Join(list, ", "))
		}
	}
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// catalogue is every check, in the order of the report.
func catalogue() []check { return slices.Concat(accessChecks(), lookingChecks()) }

// lookingChecks are those that need the rights which accessChecks ask for.
func lookingChecks() []check {
	return slices.Concat(versionChecks(), setChecks(), ownershipChecks(), storageChecks(), budgetChecks(), networkChecks(), dependencyChecks(), capacityChecks())
}

func accessChecks() []check {
	return grouped("Access", []check{
		{
			name: "permissions", worst: Fail, run: permissions,
			about:  "you may do on both sides what the move, its way back and its end need",
			remedy: "ask for a Role with the verbs it names",
		},
	})
}

func grouped(group string, checks []check) []check {
	for i := range checks {
		checks[i].group = group
	}
	return checks
}

func versionChecks() []check {
	return grouped("Versions", []check{
		{
			name: "api-version", worst: Fail, wave: true, run: apiVersion,
			about:  "the API servers are new enough, not far apart, and not older than when the plan was made",
			remedy: "upgrade the destination cluster",
		},
		{
			name: "ordinals-kept", worst: Fail, wave: true, run: ordinalsKept,
			about:  "the destination keeps spec.ordinals (tried with a dry run)",
			remedy: "upgrade the destination cluster",
		},
	})
}

func setChecks() []check {
	return grouped("Set", []check{
		{
			name: "plan-current", worst: Fail, run: unchanged,
			about:  "sets and budget are as they were when the plan was made",
			remedy: "make a new plan",
		},
		{
			name: "name-free", worst: Fail, run: nameFree,
			about:  "no other plan of this name is under way",
			remedy: "finish that plan, or give this one another --name",
		},
		{
			name: "not-migrating", worst: Fail, run: unmarked,
			about:  "no other plan is at work on the sets",
			remedy: "finish that plan, or walk it back",
		},
		{
			name: "source-settled", worst: Fail, run: sourceSettled,
			about:  "every ordinal of the source is available, with one revision and no partition",
			remedy: "repair the pod, or let the update finish",
		},
		{
			name: "selector", worst: Fail, run: selectsOwn,
			about:  "the set's selector selects no pods but its own, on either side",
			remedy: "move or relabel the other workload's pods",
		},
		{
			name: "destination-compatible", worst: Fail, wave: true, run: compatible,
			about:  "a destination set that is there has the source's selector, template and claims",
			remedy: "make them equal, or delete the destination set",
		},
		{
			name: "destination-free", worst: Fail, wave: true, run: destinationFree,
			about:  "the names of pods and claims are free on the destination",
			remedy: "delete what is in the way, if its data is not needed",
		},
	})
}

func storageChecks() []check {
	return grouped("Storage", []check{
		{
			name: "claims-bound", worst: Fail, run: claimsBound,
			about:  "every claim and its volume name each other",
			remedy: "repair the storage of this ordinal",
		},
		{
			name: "claims-unshared", worst: Fail, run: claimsUnshared,
			about:  "no other pod mounts a claim of the set",
			remedy: "wait for that pod, or delete it",
		},
		{
			name: "claims-left", worst: Fail, run: claimsLeft,
			about:  "no claim of an ordinal that is gone would be deleted with the source set",
			remedy: "take the owner reference off the claim",
		},
		{
			name: "volumes-settled", worst: Fail, wave: true, run: volumesSettled,
			about:  "no volume is being expanded or changed, and each claim could be bound to its volume again",
			remedy: "wait for the change to finish, or repair the binding",
		},
		{
			name: "volume-usable", worst: Fail, wave: true, run: volumesUsable,
			about:  "each volume means the same disk on the destination, and no other volume object means it",
			remedy: "install the driver, the class or the Secret there; data on volumes of one cluster has to be copied",
		},
		{
			name: "csi-driver", worst: Fail, ignorable: true, run: driversKnown,
			about:  "the volume handles of the CSI driver are known to mean the same disk in both clusters",
			remedy: "have an administrator annotate the CSIDriver of the destination, or --ignore csi-driver",
		},
		{
			name: "shared-volumes", worst: Fail, run: sharedUsable,
			about:  "claims that the pod template names can be mounted on both sides at once, or are there on the destination",
			remedy: "make the claim on the destination by hand",
		},
	})
}

func budgetChecks() []check {
	return grouped("Budget", []check{
		{
			name: "budget-alone", worst: Fail, run: budgetAlone,
			about:  "the PodDisruptionBudgets of both sides are about this set only",
			remedy: "narrow its selector",
		},
		{
			name: "ready-for-a-while", worst: Warn, ignorable: true, run: rested,
			about:  "every pod has been Ready for " + minutes(settling),
			remedy: "wait, if the application needs time to settle",
		},
		{
			name: "drains", worst: Warn, ignorable: true, run: draining,
			about:  "no node is being drained",
			remedy: "let the drain finish, or uncordon the node",
		},
	})
}

func networkChecks() []check {
	return grouped("Network", []check{
		{
			name: "names", worst: Fail, run: namesThere,
			about:  "what keeps the pods' names answered can be made on both sides",
			remedy: "make room for it, or make the plan with --names none",
		},
		{
			name: "service", worst: Warn, ignorable: true, run: serviceNames,
			about:  "the governing Service is headless and publishes not-ready pods alike on both sides",
			remedy: "make the two Services equal",
		},
		{
			name: "old-names", worst: Warn, ignorable: true, run: oldNames,
			about:  "neither the pod template nor its ConfigMaps name the old namespace",
			remedy: "change the names after the move, or finalize with --keep-names",
		},
	})
}

func dependencyChecks() []check {
	return grouped("Dependencies", []check{
		{
			name: "namespace", worst: Fail, run: namespaceThere,
			about:  "the destination's namespace exists and stays",
			remedy: "create it",
		},
		{
			name: "dependencies", worst: Fail, run: dependenciesThere,
			about:  "what the pods name is absent on the destination, or equal; what something makes is there",
			remedy: "make them equal, or delete that of the destination; have its maker make it there",
		},
		{
			name: "rbac", worst: Warn, ignorable: true, run: bindingsThere,
			about:  "the roles bound to the service account are bound on the destination too",
			remedy: "bind them there; they do not come along",
		},
		{
			name: "classes", worst: Fail, run: classesThere,
			about:  "the priority, runtime and device classes that the pods name exist on the destination",
			remedy: "create them there, or patch the pods",
		},
		{
			name: "images", worst: Warn, ignorable: true, run: imagesReachable,
			about:  "the destination has the images, or pull secrets for their registries",
			remedy: "make sure that its nodes can pull them",
		},
		{
			name: "pod-accepted", worst: Fail, wave: true, run: podAccepted,
			about:  "the destination lets the very pod in: quota, LimitRange, Pod Security (tried with a dry run)",
			remedy: "make room, or change the namespace's limits or the pods",
		},
		{
			name: "claims-accepted", worst: Fail, run: claimsAccepted,
			about:  "the destination lets the very claims in (tried with a dry run)",
			remedy: "make room, or change the namespace's limits",
		},
		{
			name: "quota", worst: Fail, run: quotaSuffices,
			about:  "the quotas of the destination have room for all ordinals",
			remedy: "raise the quota",
		},
		{
			name: "admission", worst: Fail, wave: true, run: admitted,
			about:  "webhooks and policies of the destination accept the set unchanged (tried with a dry run)",
			remedy: "remove what they object to",
		},
	})
}

func capacityChecks() []check {
	return grouped("Capacity", []check{
		{
			name: "nodes-fit", worst: Fail, ignorable: true, wave: true, run: nodesFit,
			about:  "the destination has nodes for the pods: requests, taints, node affinity, and where the volumes are",
			remedy: "add nodes or free some, or --ignore nodes-fit where nodes come on demand",
		},
	})
}
