package reach

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Target is a plan and its two ends. The ends are verified to be the clusters that the plan was made for.
type Target struct {
	Plan    *plans.Plan
	Store   *records.Store
	On      clusters.Clusters
	Configs map[plans.Side]*rest.Config
	Watches map[plans.Side]*clusters.Watches
	Names   map[plans.Side]*dns.Cluster
	// Ends are the clusters as the user's flags name them.
	Ends Ends
	// Lost holds, per side that could not be connected to, the reason. These sides are in none of the maps
	// above.
	Lost map[plans.Side]error
	// Home is the cluster and namespace where the plan is, or will be, stored.
	Home *End
	// Flags are those with which a later command finds the plan, for messages that name the next command.
	Flags string
}

// Command returns another command on this plan, ready to be typed. verb may end with a flag, as in "status
// -w".
func (t *Target) Command(verb string) string {
	verb, flag, _ := strings.Cut(verb, " ")
	return "`" + strings.TrimSpace("stsmigrate "+verb+" "+t.Plan.Name+t.Flags+" "+flag) + "`"
}

func newTarget(p *plans.Plan, ends Ends, home *End) *Target {
	t := &Target{
		Plan: p, Ends: ends, Home: home, Store: records.NewStore(home.Client, home.Namespace, p.Name),
		Configs: map[plans.Side]*rest.Config{}, Watches: map[plans.Side]*clusters.Watches{}, Names: map[plans.Side]*dns.Cluster{},
	}
	on := clusters.Clusters{}
	for side, e := range ends {
		on[side], t.Configs[side], t.Watches[side], t.Names[side] = e.Client, e.config, e.Watches, e.names
	}
	t.On = on.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: p.Source, plans.Destination: p.Destination})
	return t
}

// Dry returns the target with clients that send every write as a dry run: the API servers check it and store nothing.
func (t *Target) Dry() *Target {
	dry, home := *t, *t.Home
	home.Client = client.NewDryRunClient(home.Client)
	dry.Home, dry.Store, dry.On = &home, records.NewStore(home.Client, home.Namespace, t.Plan.Name), clusters.Clusters{}
	for side, c := range t.On {
		dry.On[side] = client.NewDryRunClient(c)
	}
	return &dry
}

// Stored finds a plan by its name, and connects to the clusters of both sides.
func (r *Flags) Stored(ctx context.Context, name string) (*Target, error) {
	t, err := r.Recorded(ctx, name)
	if err != nil {
		return nil, err
	}
	return t, t.Connected()
}

// Recorded finds a plan by its name in its home: the one that the --home flags name, or the --to flags, or the plain
// flags if there are neither. If it is not there, the mark on the set of either side leads to it. One or both of its
// clusters may be unreachable.
func (r *Flags) Recorded(ctx context.Context, name string) (*Target, error) {
	if r.named() {
		return r.at(ctx, name)
	}
	d := r.destination
	from, to, namespace, file := *r.source.Context, *d.Context, *d.Namespace, *d.KubeConfig
	t, err := r.atFlags(ctx, name)
	barred := apierrors.IsForbidden(err)
	if !barred && !errors.As(err, new(records.ErrNoPlan)) {
		return t, err
	}
	*r.source.Context, *d.Context, *d.Namespace, *d.KubeConfig = from, to, namespace, file
	p, home := r.byMark(ctx, name)
	switch {
	case home == nil && barred:
		return nil, fmt.Errorf("%w; plans are kept in the namespace of their destination, or of their orchestrator: name it with -n and --context, or ask for the right to get ConfigMaps there", err)
	case home == nil:
		return nil, err
	}
	if file == "" { // the plan has the contexts of its sides
		*r.source.Context, *d.KubeConfig = "", *r.source.KubeConfig
	}
	*d.Context = ""
	return r.forPlan(ctx, p, home)
}

// Requested returns the object of this name in the namespace that the flags name, if why says that there is no record
// which the user may read. Otherwise it returns why.
func (r *Flags) Requested(ctx context.Context, name string, why error) (*Requested, error) {
	var absent records.ErrNoPlan
	if !errors.As(why, &absent) && !apierrors.IsForbidden(why) || r.named() {
		return nil, why
	}
	home, err := r.Home()
	if err != nil {
		return nil, why
	}
	d, err := records.ReadDeclared(ctx, home.Client, home.Namespace, name)
	switch {
	case err != nil || d == nil:
		return nil, why
	case d.Status.Plan == records.RecordName(plans.NameIn(home.Namespace, name)):
		return &Requested{d, home}, nil
	}
	return nil, records.ErrNoPlan{Name: types.NamespacedName{Namespace: home.Namespace, Name: name}, Context: home.Context, Declared: d}
}

// atFlags finds a plan in the home that the --to flags name, or the plain flags.
func (r *Flags) atFlags(ctx context.Context, name string) (*Target, error) {
	s, d := r.source, r.destination
	if asked(d) {
		r.inherit()
	} else {
		r.inherit()
		*s.Context = "" // it named the home; the plan has the context of its source
	}
	home, err := r.open(d)
	if err != nil {
		return nil, err
	}
	p, err := home.plan(ctx, name)
	if err != nil {
		return nil, err
	}
	if uid, err := clusters.UIDOf(ctx, home.Client, p.Destination); err != nil || uid != p.Destination.Cluster {
		*d.Context = "" // it named the home of a detached plan; the plan has the context of its destination
	}
	return r.forPlan(ctx, p, home)
}

// plan reads a plan that is stored here. An error says where it was looked for.
func (e *End) plan(ctx context.Context, name string) (*plans.Plan, error) {
	p, err := records.NewStore(e.Client, e.Namespace, name).Plan(ctx)
	var absent records.ErrNoPlan
	if errors.As(err, &absent) {
		absent.Context = e.Context
		absent.Declared, _ = records.ReadDeclared(ctx, e.Client, e.Namespace, name) // it only says more about what is missing
		return nil, absent
	}
	return p, err
}

// at finds a plan where the --home flags say. The other flags keep their meaning: those of the plan's two sides.
func (r *Flags) at(ctx context.Context, name string) (*Target, error) {
	home, err := r.openHome()
	if err != nil {
		return nil, err
	}
	p, err := home.plan(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.forPlan(ctx, p, home)
}

// InFile connects to the clusters of a plan that was read from a file. If home is nil, the plan is stored on
// the destination.
func (r *Flags) InFile(ctx context.Context, p *plans.Plan, home *End) (*Target, error) {
	r.oneFile()
	t, err := r.forPlan(ctx, p, home)
	if err != nil {
		return nil, err
	}
	return t, t.Connected()
}

// oneFile makes both sides use one kubeconfig, unless flags name another for the destination.
func (r *Flags) oneFile() {
	if asked(r.destination) {
		r.inherit()
	} else {
		*r.destination.KubeConfig = *r.source.KubeConfig
	}
}

// Connected returns the reason why one of the two clusters is not connected, or nil.
func (t *Target) Connected() error {
	for _, side := range plans.Sides() {
		if err := t.Lost[side]; err != nil {
			return err
		}
	}
	return nil
}

// sides connects to the two clusters of a plan. A cluster is lost if it cannot be reached, or if no context
// of the kubeconfig is for it.
func (r *Flags) sides(ctx context.Context, p *plans.Plan) (ends Ends, lost map[plans.Side]error, err error) {
	ends, lost = Ends{}, map[plans.Side]error{}
	for side, flags := range map[plans.Side]*genericclioptions.ConfigFlags{plans.Source: r.source, plans.Destination: r.destination} {
		named := *flags.Context != ""
		e, err := r.connect(ctx, p, side, flags)
		switch {
		case err == nil:
			ends[side] = e
		case named && errors.As(err, new(errOtherCluster)):
			return nil, nil, err
		default:
			lost[side] = err
		}
	}
	return ends, lost, nil
}

// forPlan connects to the two clusters of a plan. Either may be lost.
func (r *Flags) forPlan(ctx context.Context, p *plans.Plan, home *End) (*Target, error) {
	ends, lost, err := r.sides(ctx, p)
	if err != nil {
		return nil, err
	}
	if home == nil {
		if err := lost[plans.Destination]; err != nil {
			return nil, err
		}
		there := *ends[plans.Destination]
		there.Namespace = p.Destination.Namespace
		home = &there
	}
	t := newTarget(p, ends, home)
	t.Lost, t.Flags = lost, r.found(p, home)
	return t, nil
}

// errOtherCluster reports that a context is for another cluster than that side of the plan.
type errOtherCluster struct{ error }

// connect connects to a cluster of a plan and verifies its identity. Without a flag that names a context, it
// uses the context of the plan.
func (r *Flags) connect(ctx context.Context, p *plans.Plan, side plans.Side, flags *genericclioptions.ConfigFlags) (*End, error) {
	context := p.On(side).Context
	if raw, err := flags.ToRawKubeConfigLoader().RawConfig(); err == nil && *flags.Context == "" && raw.Contexts[context] != nil {
		*flags.Context = context
	}
	guessed := *flags.Context == ""
	e, err := r.open(flags)
	if err != nil {
		return nil, fmt.Errorf("%s of plan %s: %w", side, p.Name, err)
	}
	uid, err := clusters.UIDOf(ctx, e.Client, p.On(side))
	if err != nil {
		return nil, fmt.Errorf("%s of plan %s (%s): %w", side, p.Name, e.Name(), err)
	}
	if uid != p.On(side).Cluster && guessed {
		return nil, fmt.Errorf("%s of plan %s: kubeconfig %s has no context %q, and %q is another cluster: name both sides with --context and --to-context or their kubeconfigs", side, p.Name, kubeconfig(flags), context, e.Context)
	}
	if uid != p.On(side).Cluster {
		flag := map[plans.Side]string{plans.Source: "--context", plans.Destination: "--to-context"}[side]
		return nil, errOtherCluster{fmt.Errorf("context %s is another cluster than the %s of plan %s (context %s when it was made): name both with --context and --to-context or their kubeconfigs; %s is wrong", e.Context, side, p.Name, context, flag)}
	}
	return e, nil
}

// Again returns the flags with which a later command finds what this one has found at home.
func (r *Flags) Again(home *End) string {
	s, d := *r.source.KubeConfig, *r.destination.KubeConfig
	if s == d || d == "" {
		return program.Given("-n", home.Namespace, "--context", home.Context) + r.Kubeconfigs()
	}
	return r.Kubeconfigs() + program.Given("--to-context", home.Context, "--to-namespace", home.Namespace)
}

// found returns the flags with which a later command finds a plan at home and the clusters of its sides. On this machine a
// context may have another name than where the plan was made, or its name may mean another cluster.
func (r *Flags) found(p *plans.Plan, home *End) string {
	from, to := *r.source.Context, *r.destination.Context
	there := to == "" || to == home.Context
	switch recorded := from == "" || from == p.Source.Context; {
	case recorded && (there || to == p.Destination.Context):
		return r.Again(home)
	case there:
		return program.Given("-n", home.Namespace, "--context", from, "--to-context", home.Context) + r.Kubeconfigs()
	}
	return program.Given("--context", from, "--to-context", to, "--home-context", home.Context, "--home-namespace", home.Namespace) + r.Kubeconfigs()
}

// Kubeconfigs returns the flags that name the kubeconfigs of both sides.
func (r *Flags) Kubeconfigs() string {
	s, d := *r.source.KubeConfig, *r.destination.KubeConfig
	if s == d {
		d = ""
	}
	return program.Given("--kubeconfig", s, "--to-kubeconfig", d)
}
