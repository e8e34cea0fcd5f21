package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// Home is the name of the orchestrator's own cluster.
const Home = "in-cluster"

// Limits apply to the requests of all plans together to one cluster.
type Limits struct {
	// QPS is the rate in requests per second, and Burst how many requests may be sent at once above it.
	QPS   float32
	Burst int
}

// Setup configures a fleet.
type Setup struct {
	// Home is the orchestrator's own cluster, and Own the UID of its namespace kube-system.
	Home *rest.Config
	Own  types.UID
	// Limits apply to each cluster.
	Limits Limits
	// Agent is the user agent of the process.
	Agent string
	// Loopback lets Secrets name clusters on this machine, for test beds.
	Loopback bool
}

// Fleet holds the clusters by their names.
type Fleet struct {
	Setup
	lock sync.Mutex
	home *Cluster
	// changed is called when a cluster begins or ceases to answer.
	changed atomic.Pointer[func()]
	// secrets holds the clusters of each Secret, by the Secret's name. refused holds the reason for each
	// Secret whose present content is not accepted.
	secrets map[string]holding
	refused map[string]error
}

// holding is the clusters of one Secret by their names.
type holding struct {
	clusters map[string]*Cluster
	// given reports that the Secret's author gave the name to the Secret. Other names are those of
	// contexts, which only the author of the kubeconfig chose.
	given bool
}

// New returns a fleet of one cluster, the orchestrator's own one. Its address is not restricted.
func New(s Setup) *Fleet {
	f := &Fleet{Setup: s, secrets: map[string]holding{}, refused: map[string]error{}}
	f.home = f.cluster(Home)
	f.prepare(f.home, transport.Careful(f.home.breaker.wrap(s.Home)))
	return f
}

// OnChange has a function called whenever a cluster begins or ceases to answer.
func (f *Fleet) OnChange(changed func()) { f.changed.Store(&changed) }

// Cluster is one cluster for as long as its server stays the same. Its credentials may be renewed
// meanwhile.
type Cluster struct {
	Name string
	// Gone is closed when the server or its certificate authority changes, or when the Secret is
	// deleted.
	Gone    chan struct{}
	given   *rest.Config
	wire    *wire
	config  *rest.Config
	breaker *breaker
	once    sync.Once
	end     *End
	err     error
}

// End is a connection to a cluster.
type End struct {
	// Client reads live.
	Client  client.Client
	Config  *rest.Config
	Watches *clusters.Watches
	Names   *dns.Cluster
}

// cluster returns a cluster that has no config yet.
func (f *Fleet) cluster(name string) *Cluster {
	c := &Cluster{Name: name, Gone: make(chan struct{})}
	c.breaker = newBreaker(name, c.Gone, func() {
		if changed := f.changed.Load(); changed != nil {
			(*changed)()
		}
	})
	return c
}

// prepare gives the cluster its config. All its users share the limits.
func (f *Fleet) prepare(c *Cluster, config *rest.Config) {
	config.RateLimiter = newLanes(f.Limits)
	config.UserAgent = f.Agent
	config.WarningHandlerWithContext = clusters.Warnings{}
	c.config = config
	c.breaker.ask = question(config)
}

// Reached returns why a cluster cannot be reached: it is not known, does not answer, or was not asked yet, which is then
// done. It does not wait for that.
func (f *Fleet) Reached(name string, uid types.UID) error {
	c, err := f.Find(name, uid)
	if err != nil {
		return err
	}
	return c.breaker.silence()
}

// Known returns the name by which Find knows a cluster. The author of a plan chooses no other one.
func (f *Fleet) Known(name string, uid types.UID) string {
	if uid == f.Own {
		return Home
	}
	return name
}

// Connect connects to the cluster on its first call. It sends no request to the API server yet.
func (c *Cluster) Connect() (*End, error) {
	c.once.Do(func() {
		through, err := cluster.New(c.config, func(o *cluster.Options) {
			o.Scheme = clusters.Scheme()
			// Decisions need live reads, so there is no cache to read from.
			o.NewClient = func(config *rest.Config, _ client.Options) (client.Client, error) {
				return clusters.Connect(config)
			}
		})
		if err != nil {
			c.err = fmt.Errorf("connecting to cluster %s: %w", c.Name, err)
			return
		}
		end := &End{Client: through.GetClient(), Config: c.config}
		if end.Watches, c.err = clusters.NewWatches(c.config); c.err != nil {
			return
		}
		end.Names, c.err = dns.NewCluster(c.config)
		c.end = end
	})
	return c.end, c.err
}

// Learn adopts the content of a Secret. Clusters at the same server stay connected, and their next
// requests use the new credentials. A Secret that is refused changes nothing: its clusters are reached
// as before, until the Secret is replaced or deleted.
func (f *Fleet) Learn(s *corev1.Secret) error {
	if !Holds(s) {
		f.Forget(s.Name)
		return nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	before := f.secrets[s.Name]
	next, renewed, err := f.learn(s, before.clusters)
	if err != nil {
		if err = fmt.Errorf("Secret %s/%s holds no cluster: %w", s.Namespace, s.Name, err); len(before.clusters) > 0 {
			err = fmt.Errorf("%w; %s reached as before, until this process ends", err, list(slices.Sorted(maps.Keys(before.clusters))))
		}
		f.refused[s.Name] = err
		return err
	}
	delete(f.refused, s.Name)
	for c, to := range renewed {
		c.wire.renew(to.access)
		c.given = to.given
	}
	f.secrets[s.Name] = next
	gone(before.clusters, next.clusters)
	return nil
}

// renewal is the new configuration and credentials of a cluster.
type renewal struct {
	given  *rest.Config
	access *access
}

// learn reads a Secret, and changes nothing yet.
func (f *Fleet) learn(s *corev1.Secret, before map[string]*Cluster) (holding, map[*Cluster]renewal, error) {
	configs, given, err := read(s)
	if err != nil {
		return holding{}, nil, err
	}
	next, renewed := holding{map[string]*Cluster{}, given}, map[*Cluster]renewal{}
	for name, config := range configs {
		if err := refuseServer(config.Host, f.Loopback); err != nil {
			return holding{}, nil, fmt.Errorf("the server of %q: %w", name, err)
		}
		c := before[name]
		if c == nil || !sameServer(c.given, config) {
			w := newWire(f.Loopback)
			w.login = transport.Login{Of: fmt.Sprintf("cluster %s (Secret %s/%s)", name, s.Namespace, s.Name), Renew: "put a new one into the Secret: it is used at once"}
			c = f.cluster(name)
			c.wire, w.breaker = w, c.breaker
			f.prepare(c, w.config(config))
		}
		next.clusters[name] = c
		if reflect.DeepEqual(c.given, config) {
			continue
		}
		a, err := c.wire.access(config)
		if err != nil {
			return holding{}, nil, fmt.Errorf("%q: %w", name, err)
		}
		renewed[c] = renewal{config, a}
	}
	return next, renewed, nil
}

// sameServer reports whether two configs differ in credentials at most.
func sameServer(a, b *rest.Config) bool {
	return a.Host == b.Host && a.ServerName == b.ServerName && bytes.Equal(a.CAData, b.CAData)
}

// list joins names, followed by "is" or "are".
func list(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

// Forget drops the clusters of a deleted Secret.
func (f *Fleet) Forget(secret string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	gone(f.secrets[secret].clusters, nil)
	delete(f.secrets, secret)
	delete(f.refused, secret)
}

func gone(before, now map[string]*Cluster) {
	for name, c := range before {
		if now[name] != c {
			close(c.Gone)
		}
	}
}

// Find returns the cluster of a plan. The orchestrator's own cluster is found by its UID, so that no
// Secret can stand for it. For the others, a name that was given to a Secret takes precedence over names
// of contexts, so that no kubeconfig can make the name ambiguous. Two clusters of the same precedence
// are an error: Find never guesses.
func (f *Fleet) Find(name string, uid types.UID) (*Cluster, error) {
	if uid == f.Own {
		return f.home, nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, given := range []bool{true, false} {
		var found []*Cluster
		var in []string
		for _, secret := range slices.Sorted(maps.Keys(f.secrets)) {
			if c := f.secrets[secret].clusters[name]; c != nil && f.secrets[secret].given == given {
				found, in = append(found, c), append(in, secret)
			}
		}
		switch {
		case len(found) > 1:
			return nil, fmt.Errorf("the Secrets %s all hold a cluster named %q: leave one of them", strings.Join(in, " and "), name)
		case len(found) == 1:
			return found[0], nil
		}
	}
	hint := ""
	for _, secret := range slices.Sorted(maps.Keys(f.refused)) {
		hint += "; " + f.refused[secret].Error()
	}
	return nil, reasons.Because(reasons.ClusterUnknown, fmt.Errorf("no cluster named %q is known: put its kubeconfig into a Secret with the label %s: %s, under the key kubeconfig%s", name, Label, name, hint))
}

// Names returns the names by which Find knows clusters.
func (f *Fleet) Names() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	known := map[string]bool{}
	for _, s := range f.secrets {
		for name := range s.clusters {
			known[name] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}
