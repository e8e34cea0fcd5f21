// Package reach connects a command to the clusters of its plan: it reads kubectl's flags, once for each side, finds
// where the plan is stored, and verifies that both clusters are those that the plan was made for.
package reach

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Flags describes how the two clusters are reached: kubectl's flags twice.
type Flags struct {
	// Version is the version of the program. API servers log it.
	Version string
	// Ended is closed when the command has ended.
	Ended               <-chan struct{}
	source, destination *genericclioptions.ConfigFlags
	home                *genericclioptions.ConfigFlags
	opened              []*End
}

// AddFlags adds kubectl's flags for the source, and all of them once more with the prefix "to-" for the destination. The
// flags with the prefix "home-" name where plans are looked for.
func (r *Flags) AddFlags(flags *pflag.FlagSet) {
	r.source = genericclioptions.NewConfigFlags(false)
	r.source.CacheDir, r.source.DisableCompression = nil, nil
	r.source.AddFlags(flags)
	r.destination = genericclioptions.NewConfigFlags(false)
	r.destination.CacheDir, r.destination.DisableCompression = nil, nil
	to := pflag.NewFlagSet("to", pflag.ContinueOnError)
	r.destination.AddFlags(to)
	to.VisitAll(func(f *pflag.Flag) {
		f.Name, f.Shorthand = "to-"+f.Name, ""
		f.Usage = "Destination: " + f.Usage
		flags.AddFlag(f)
	})
	r.home = genericclioptions.NewConfigFlags(false)
	flags.StringVar(r.home.KubeConfig, "home-kubeconfig", "", "Home, where plans are looked for: path to the kubeconfig file")
	flags.StringVar(r.home.Context, "home-context", "", "Home: the name of the kubeconfig context (default: the destination's)")
	flags.StringVar(r.home.Namespace, "home-namespace", "", "Home: the namespace (default: the destination's)")
}

// End is one cluster, as a kubeconfig names it.
type End struct {
	config    *rest.Config
	Client    client.Client
	Watches   *clusters.Watches
	names     *dns.Cluster
	Context   string
	Namespace string
	// Flags are those with which the user's own tools reach this cluster from here, each with a space before it. The
	// context that a plan records may mean another cluster on this machine.
	Flags string
}

// Kubectl returns the beginning of a command line for a namespace of the cluster.
func (e *End) Kubectl(namespace string) string {
	return "kubectl" + e.Flags + program.Given("-n", namespace)
}

// Ends are the clusters of the sides of a plan that are connected.
type Ends map[plans.Side]*End

// Flags returns the flags of each end.
func (e Ends) Flags() map[plans.Side]string {
	out := map[plans.Side]string{}
	for side, end := range e {
		out[side] = end.Flags
	}
	return out
}

// shown returns an address without the password that may be in it.
func shown(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "an address that cannot be shown"
	}
	return u.Redacted()
}

// Name returns what the user knows the cluster by: the context, or the server if there is none, as in a pod.
func (e *End) Name() string {
	if e.Context == "" {
		return shown(e.config.Host)
	}
	return "context " + e.Context
}

// Wait returns when no watch of any cluster is open any more. The context of the command must have ended.
func (r *Flags) Wait() {
	for _, e := range r.opened {
		e.Watches.Wait()
	}
}

// open connects to the cluster that the flags name. It sends no request to the API server yet.
func (r *Flags) open(flags *genericclioptions.ConfigFlags) (*End, error) {
	loader := flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig(flags), err)
	}
	e := &End{Context: raw.CurrentContext}
	if *flags.Context != "" {
		e.Context = *flags.Context
		if _, ok := raw.Contexts[e.Context]; !ok {
			return nil, fmt.Errorf("kubeconfig %s has no context %q (it has: %s)", kubeconfig(flags), e.Context, keys(raw.Contexts))
		}
	}
	// Without any configuration the loader would try localhost.
	if _, err := rest.InClusterConfig(); err != nil && clientcmdapi.IsConfigEmpty(&raw) && (flags.APIServer == nil || *flags.APIServer == "") {
		return nil, fmt.Errorf("no kubeconfig found at %s: give --kubeconfig, or set KUBECONFIG", kubeconfig(flags))
	}
	if e.config, err = loader.ClientConfig(); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig(flags), err)
	}
	if e.Namespace, _, err = loader.Namespace(); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig(flags), err)
	}
	e.Flags = program.Given("--kubeconfig", *flags.KubeConfig, "--context", e.Context, "--cluster", *flags.ClusterName, "--server", shown(*flags.APIServer))
	// Requests follow one another; the API server's own fairness is enough.
	e.config.QPS = -1
	e.config.UserAgent = "stsmigrate/" + r.Version
	e.config.WarningHandlerWithContext = clusters.Warnings{}
	// The user chose the server, so any address is accepted. The target of a redirect is not chosen by the
	// user, and the credentials would be sent there too.
	e.config = transport.CarefulOf(e.login(&raw), e.config)
	e.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return discovery{next, r.Ended} })
	if e.Client, err = clusters.Connect(e.config); err != nil {
		return nil, fmt.Errorf("context %s: %w", e.Context, err)
	}
	if e.Watches, err = clusters.NewWatches(e.config); err != nil {
		return nil, fmt.Errorf("context %s: %w", e.Context, err)
	}
	if e.names, err = dns.NewCluster(e.config); err != nil {
		return nil, fmt.Errorf("context %s: %w", e.Context, err)
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
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Contexts returns the contexts of a kubeconfig, for completion: that of the plain flags, or with another prefix that of
// the destination.
func (r *Flags) Contexts(prefix string) []string {
	flags := r.source
	if prefix != "" {
		r.inherit()
		flags = r.destination
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// asked reports whether any flag names this end.
func asked(f *genericclioptions.ConfigFlags) bool {
	return elsewhere(f) || *f.Namespace != ""
}

// elsewhere reports whether any flag names a cluster of its own.
func elsewhere(f *genericclioptions.ConfigFlags) bool {
	return *f.KubeConfig != "" || *f.Context != "" || *f.ClusterName != "" || *f.APIServer != ""
}

// inherit fills in the destination's missing flags from the source. If the destination has another
// kubeconfig, its own current context applies. How the source's server is reached, and as whom, holds for the
// destination only if that is the same cluster.
func (r *Flags) inherit() {
	s, d := r.source, r.destination
	if !elsewhere(d) {
		r.sameServer()
	}
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

// sameServer copies how the source's server is reached, unless the destination's flags say it.
func (r *Flags) sameServer() {
	s, d := r.source, r.destination
	for to, from := range map[*string]*string{
		d.APIServer: s.APIServer, d.TLSServerName: s.TLSServerName, d.CertFile: s.CertFile, d.KeyFile: s.KeyFile, d.CAFile: s.CAFile,
		d.BearerToken: s.BearerToken, d.Impersonate: s.Impersonate, d.ImpersonateUID: s.ImpersonateUID,
	} {
		if *to == "" {
			*to = *from
		}
	}
	if *d.Timeout == "" || *d.Timeout == "0" {
		*d.Timeout = *s.Timeout
	}
	if len(*d.ImpersonateGroup) == 0 {
		*d.ImpersonateGroup = *s.ImpersonateGroup
	}
	if len(*d.ImpersonateUserExtra) == 0 {
		*d.ImpersonateUserExtra = *s.ImpersonateUserExtra
	}
	*d.Insecure = *d.Insecure || *s.Insecure
}

// FillFrom takes what no flag names from the two places of a Migration.
func (r *Flags) FillFrom(source, destination plans.Place) {
	for flags, place := range map[*genericclioptions.ConfigFlags]plans.Place{r.source: source, r.destination: destination} {
		for flag, value := range map[*string]string{flags.KubeConfig: place.Kubeconfig, flags.Context: place.Context, flags.Namespace: place.Namespace} {
			if *flag == "" {
				*flag = value
			}
		}
	}
}

// Namespace returns the namespace that the plain flags name, or "".
func (r *Flags) Namespace() string { return *r.source.Namespace }

// Destined reports whether any flag names a destination, and the namespace that one names there, or "".
func Destined(r *Flags) (namespace string, is bool) {
	return *r.destination.Namespace, asked(r.destination)
}

// Single connects to the cluster that the plain flags name, for a command that is about one cluster.
func (r *Flags) Single() (*End, error) { return r.open(r.source) }

// named reports whether a --home flag says where plans are looked for.
func (r *Flags) named() bool {
	return *r.home.KubeConfig != "" || *r.home.Context != "" || *r.home.Namespace != ""
}

// At says where plans are looked for, for a command with flags of its own for that.
func (r *Flags) At(context, namespace string) {
	*r.home.Context, *r.home.Namespace = context, namespace
}

// openHome connects to the cluster and namespace that the --home flags name. What they leave out is as for the
// destination.
func (r *Flags) openHome() (at *End, err error) {
	s, d, h := r.source, r.destination, r.home
	ofSource, ofDestination := *s.Context, *d.Context
	r.inherit()
	namespace := *d.Namespace
	defer func() { *s.Context, *d.Context, *d.Namespace = ofSource, ofDestination, namespace }()
	if *h.Namespace == "" {
		*h.Namespace = namespace
	}
	if *h.KubeConfig == "" && *h.Context == "" {
		*d.Namespace = *h.Namespace
		at, err = r.open(d)
	} else {
		if *h.KubeConfig == "" {
			*h.KubeConfig = *d.KubeConfig
		}
		at, err = r.open(h)
	}
	if err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	return at, nil
}

// Home connects to the cluster and namespace in which plans are looked for: those that the --home flags name, or the
// --to flags, or the plain flags if there are neither.
func (r *Flags) Home() (*End, error) {
	if r.named() {
		return r.openHome()
	}
	if !asked(r.destination) {
		return r.open(r.source)
	}
	r.inherit()
	return r.open(r.destination)
}

// Both connects to the two ends that the flags name.
func (r *Flags) Both() (source, destination *End, err error) {
	r.inherit()
	if source, err = r.open(r.source); err != nil {
		return nil, nil, fmt.Errorf("source: %w", err)
	}
	if destination, err = r.open(r.destination); err != nil {
		return nil, nil, fmt.Errorf("destination: %w", err)
	}
	return source, destination, nil
}
