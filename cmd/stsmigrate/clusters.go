package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/clusters/transport"
	"github.com/stsmigrate/stsmigrate/dns"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// reach describes how the two clusters are reached: kubectl's flags twice.
type reach struct {
	source, destination *genericclioptions.ConfigFlags
	opened              []*end
}

// addFlags adds kubectl's flags for the source. Those that name a cluster are added once more with the prefix
// "to-" for the destination.
func (r *reach) addFlags(flags *pflag.FlagSet) {
	r.source = genericclioptions.NewConfigFlags(false)
	r.source.CacheDir, r.source.DisableCompression = nil, nil
	r.source.AddFlags(flags)
	r.destination = genericclioptions.NewConfigFlags(false)
	for _, drop := range []**string{
		&r.destination.CacheDir, &r.destination.Impersonate, &r.destination.ImpersonateUID, &r.destination.Timeout,
		&r.destination.CertFile, &r.destination.KeyFile, &r.destination.CAFile, &r.destination.TLSServerName,
		&r.destination.BearerToken, &r.destination.APIServer,
	} {
		*drop = nil
	}
	r.destination.ImpersonateGroup, r.destination.ImpersonateUserExtra = nil, nil
	r.destination.Insecure, r.destination.DisableCompression = nil, nil
	to := pflag.NewFlagSet("to", pflag.ContinueOnError)
	r.destination.AddFlags(to)
	to.VisitAll(func(f *pflag.Flag) {
		f.Name, f.Shorthand = "to-"+f.Name, ""
		f.Usage = "Destination: " + f.Usage
		flags.AddFlag(f)
	})
}

// end is one cluster, as a kubeconfig names it.
type end struct {
	config    *rest.Config
	client    client.Client
	watches   *clusters.Watches
	names     *dns.Cluster
	context   string
	namespace string
}

// wait returns when no watch of any cluster is open any more. The context of the command must have ended.
func (r *reach) wait() {
	for _, e := range r.opened {
		e.watches.Wait()
	}
}

// open connects to the cluster that the flags name. It sends no request to the API server yet.
func (r *reach) open(flags *genericclioptions.ConfigFlags) (*end, error) {
	loader := flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig(flags), err)
	}
	e := &end{context: raw.CurrentContext}
	if *flags.Context != "" {
		e.context = *flags.Context
		if _, ok := raw.Contexts[e.context]; !ok {
			return nil, fmt.Errorf("kubeconfig %s has no context %q (it has: %s)", kubeconfig(flags), e.context, keys(raw.Contexts))
		}
	}
	// Without any configuration the loader would try localhost.
	if _, err := rest.InClusterConfig(); err != nil && clientcmdapi.IsConfigEmpty(&raw) && (flags.APIServer == nil || *flags.APIServer == "") {
		return nil, fmt.Errorf("no kubeconfig found at %s: give --kubeconfig, or set KUBECONFIG", kubeconfig(flags))
	}
	if e.config, err = loader.ClientConfig(); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig(flags), err)
	}
	if e.namespace, _, err = loader.Namespace(); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig(flags), err)
	}
	// Requests follow one another; the API server's own fairness is enough.
	e.config.QPS = -1
	e.config.UserAgent = "stsmigrate/" + versionText()
	e.config.WarningHandlerWithContext = clusters.Warnings{}
	// The user chose the server, so any address is accepted. The target of a redirect is not chosen by the
	// user, and the credentials would be sent there too.
	e.config = transport.Careful(e.config)
	if e.client, err = clusters.Connect(e.config); err != nil {
		return nil, fmt.Errorf("context %s: %w", e.context, err)
	}
	if e.watches, err = clusters.NewWatches(e.config); err != nil {
		return nil, fmt.Errorf("context %s: %w", e.context, err)
	}
	if e.names, err = dns.NewCluster(e.config); err != nil {
		return nil, fmt.Errorf("context %s: %w", e.context, err)
	}
	r.opened = append(r.opened, e)
	return e, nil
}

func kubeconfig(flags *genericclioptions.ConfigFlags) string {
	if flags.KubeConfig != nil && *flags.KubeConfig != "" {
		return *flags.KubeConfig
	}
	if env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); env != "" {
		return env
	}
	return clientcmd.RecommendedHomeFile
}

func keys[T any](m map[string]T) string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// asked reports whether any flag names this end.
func asked(f *genericclioptions.ConfigFlags) bool {
	return *f.KubeConfig != "" || *f.Context != "" || *f.ClusterName != "" || *f.Namespace != ""
}

// inherit fills in the destination's missing flags from the source. If the destination has another
// kubeconfig, its own current context applies.
func (r *reach) inherit() {
	s, d := r.source, r.destination
	if *d.KubeConfig == "" {
		*d.KubeConfig = *s.KubeConfig
		if *d.Context == "" {
			*d.Context = *s.Context
		}
		if *d.ClusterName == "" {
			*d.ClusterName = *s.ClusterName
		}
		if *d.AuthInfoName == "" {
			*d.AuthInfoName = *s.AuthInfoName
		}
	}
	if *d.Namespace == "" {
		*d.Namespace = *s.Namespace
	}
}

// both connects to the two ends that the flags name.
func (r *reach) both() (source, destination *end, err error) {
	r.inherit()
	if source, err = r.open(r.source); err != nil {
		return nil, nil, fmt.Errorf("source: %w", err)
	}
	if destination, err = r.open(r.destination); err != nil {
		return nil, nil, fmt.Errorf("destination: %w", err)
	}
	return source, destination, nil
}

// target is a plan and its two ends. The ends are verified to be the clusters that the plan was made for.
type target struct {
	plan    *plans.Plan
	store   *records.Store
	on      clusters.Clusters
	configs map[plans.Side]*rest.Config
	watches map[plans.Side]*clusters.Watches
	names   map[plans.Side]*dns.Cluster
	// lost holds, per side that could not be connected to, the reason. These sides are in none of the maps
	// above.
	lost map[plans.Side]error
	// home is the cluster and namespace where the plan is, or will be, stored.
	home *end
	// flags are those with which a later command finds the plan, for messages that name the next command.
	flags string
}

// command returns another command on this plan, ready to be typed. verb may end with a flag, as in "status
// -w".
func (t *target) command(verb string) string {
	verb, flag, _ := strings.Cut(verb, " ")
	return "`" + strings.TrimSpace("stsmigrate "+verb+" "+t.plan.Name+t.flags+" "+flag) + "`"
}

func newTarget(p *plans.Plan, ends map[plans.Side]*end, home *end) *target {
	t := &target{
		plan: p, home: home, store: records.NewStore(home.client, home.namespace, p.Name),
		configs: map[plans.Side]*rest.Config{}, watches: map[plans.Side]*clusters.Watches{}, names: map[plans.Side]*dns.Cluster{},
	}
	on := clusters.Clusters{}
	for side, e := range ends {
		on[side], t.configs[side], t.watches[side], t.names[side] = e.client, e.config, e.watches, e.names
	}
	t.on = on.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: p.Source, plans.Destination: p.Destination})
	return t
}

// stored finds a plan by its name, and connects to the clusters of both sides.
func (r *reach) stored(ctx context.Context, name string) (*target, error) {
	t, err := r.recorded(ctx, name)
	if err != nil {
		return nil, err
	}
	return t, t.connected()
}

// recorded finds a plan by its name in its home: the one that the --to flags name, or the plain flags if
// there are none. One or both of its clusters may be unreachable.
func (r *reach) recorded(ctx context.Context, name string) (*target, error) {
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
	p, err := records.NewStore(home.client, home.namespace, name).Plan(ctx)
	if err != nil {
		return nil, err
	}
	if uid, err := clusters.ClusterUID(ctx, home.client); err != nil || uid != p.Destination.Cluster {
		*d.Context = "" // it named the home of a detached plan; the plan has the context of its destination
	}
	return r.forPlan(ctx, p, home)
}

// inFile connects to the clusters of a plan that was read from a file. If home is nil, the plan is stored on
// the destination.
func (r *reach) inFile(ctx context.Context, p *plans.Plan, home *end) (*target, error) {
	r.oneFile()
	t, err := r.forPlan(ctx, p, home)
	if err != nil {
		return nil, err
	}
	return t, t.connected()
}

// oneFile makes both sides use one kubeconfig, unless flags name another for the destination.
func (r *reach) oneFile() {
	if asked(r.destination) {
		r.inherit()
	} else {
		*r.destination.KubeConfig = *r.source.KubeConfig
	}
}

// connected returns the reason why one of the two clusters is not connected, or nil.
func (t *target) connected() error {
	for _, side := range plans.Sides() {
		if err := t.lost[side]; err != nil {
			return err
		}
	}
	return nil
}

// sides connects to the two clusters of a plan. A cluster is lost if it cannot be reached, or if no context
// of the kubeconfig is for it.
func (r *reach) sides(ctx context.Context, p *plans.Plan) (ends map[plans.Side]*end, lost map[plans.Side]error, err error) {
	ends, lost = map[plans.Side]*end{}, map[plans.Side]error{}
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
func (r *reach) forPlan(ctx context.Context, p *plans.Plan, home *end) (*target, error) {
	ends, lost, err := r.sides(ctx, p)
	if err != nil {
		return nil, err
	}
	if home == nil {
		if err := lost[plans.Destination]; err != nil {
			return nil, err
		}
		there := *ends[plans.Destination]
		there.namespace = p.Destination.Namespace
		home = &there
	}
	t := newTarget(p, ends, home)
	t.lost, t.flags = lost, r.again(home)
	return t, nil
}

// errOtherCluster reports that a context is for another cluster than that side of the plan.
type errOtherCluster struct{ error }

// connect connects to a cluster of a plan and verifies its identity. Without a flag that names a context, it
// uses the context of the plan.
func (r *reach) connect(ctx context.Context, p *plans.Plan, side plans.Side, flags *genericclioptions.ConfigFlags) (*end, error) {
	context := p.On(side).Context
	if raw, err := flags.ToRawKubeConfigLoader().RawConfig(); err == nil && *flags.Context == "" && raw.Contexts[context] != nil {
		*flags.Context = context
	}
	guessed := *flags.Context == ""
	e, err := r.open(flags)
	if err != nil {
		return nil, fmt.Errorf("%s of plan %s: %w", side, p.Name, err)
	}
	uid, err := clusters.ClusterUID(ctx, e.client)
	if err != nil {
		return nil, fmt.Errorf("%s of plan %s (context %s): %w", side, p.Name, e.context, err)
	}
	if uid != p.On(side).Cluster && guessed {
		return nil, fmt.Errorf("%s of plan %s: kubeconfig %s has no context %q, and %q is another cluster: name both sides with --context and --to-context or their kubeconfigs", side, p.Name, kubeconfig(flags), context, e.context)
	}
	if uid != p.On(side).Cluster {
		flag := map[plans.Side]string{plans.Source: "--context", plans.Destination: "--to-context"}[side]
		return nil, errOtherCluster{fmt.Errorf("context %s is another cluster than the %s of plan %s (context %s when it was made): name both with --context and --to-context or their kubeconfigs; %s is wrong", e.context, side, p.Name, context, flag)}
	}
	return e, nil
}

// again returns the flags with which a later command finds the plan.
func (r *reach) again(home *end) string {
	s, d := *r.source.KubeConfig, *r.destination.KubeConfig
	switch {
	case s == "" && d == "":
		return fmt.Sprintf(" -n %s --context %s", home.namespace, home.context)
	case s == d:
		return fmt.Sprintf(" -n %s --context %s --kubeconfig %s", home.namespace, home.context, d)
	}
	return fmt.Sprintf(" --kubeconfig %s --to-kubeconfig %s --to-context %s --to-namespace %s", s, d, home.context, home.namespace)
}

var errNoTerminal = errors.New("this changes both sides and standard input is not a terminal: look at the plan, then give --yes")
