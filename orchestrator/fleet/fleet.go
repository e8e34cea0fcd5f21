package fleet

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/stsmigrate/stsmigrate/orchestrator"
)

// Home is the name of the orchestrator's own cluster.
const Home = "in-cluster"

// Limits hold for the requests to one cluster, of all plans together.
type Limits struct {
	// QPS is how many requests per second, and Burst how many at once before that holds.
	QPS   float32
	Burst int
}

// Fleet has the clusters by their names.
type Fleet struct {
	limits Limits
	agent  string
	lock   sync.Mutex
	home   *Cluster
	// secrets has what each Secret holds, by its name, and why one holds nothing.
	secrets map[string]map[string]*Cluster
	refused map[string]error
}

// New returns a fleet of one: the orchestrator's own cluster.
func New(home *rest.Config, limits Limits, agent string) *Fleet {
	f := &Fleet{limits: limits, agent: agent, secrets: map[string]map[string]*Cluster{}, refused: map[string]error{}}
	f.home = f.cluster(Home, home)
	return f
}

// Cluster is one cluster, for as long as its credentials are these.
type Cluster struct {
	Name string
	// Gone is closed when the credentials have changed, or the Secret has gone.
	Gone   chan struct{}
	given  *rest.Config
	config *rest.Config
	once   sync.Once
	end    *End
	err    error
}

// End is a connection to a cluster.
type End struct {
	// Client reads live.
	Client  client.Client
	Config  *rest.Config
	Watches *orchestrator.Watches
}

// cluster prepares a connection. All that use it share the limits.
func (f *Fleet) cluster(name string, config *rest.Config) *Cluster {
	limited := rest.CopyConfig(config)
	limited.RateLimiter = newLanes(f.limits)
	limited.UserAgent = f.agent
	limited.WarningHandlerWithContext = orchestrator.Warnings{}
	return &Cluster{Name: name, Gone: make(chan struct{}), given: config, config: limited}
}

// Connect connects to the cluster, the first time. It asks the API server nothing yet.
func (c *Cluster) Connect() (*End, error) {
	c.once.Do(func() {
		through, err := cluster.New(c.config, func(o *cluster.Options) {
			o.Scheme = orchestrator.Scheme()
			// What is decided is read live, so that there is no cache to read from.
			o.NewClient = func(config *rest.Config, _ client.Options) (client.Client, error) {
				return orchestrator.Connect(config)
			}
		})
		if err != nil {
			c.err = fmt.Errorf("connecting to cluster %s: %w", c.Name, err)
			return
		}
		watches, err := orchestrator.NewWatches(c.config)
		c.end, c.err = &End{Client: through.GetClient(), Config: c.config, Watches: watches}, err
	})
	return c.end, c.err
}

// Learn takes over what a Secret holds. Clusters whose credentials are the same stay
// connected.
func (f *Fleet) Learn(s *corev1.Secret) error {
	if !Holds(s) {
		f.Forget(s.Name)
		return nil
	}
	configs, err := read(s)
	f.lock.Lock()
	defer f.lock.Unlock()
	if err != nil {
		err = fmt.Errorf("Secret %s/%s holds no cluster: %w", s.Namespace, s.Name, err)
		f.refused[s.Name] = err
	} else {
		delete(f.refused, s.Name)
	}
	before, now := f.secrets[s.Name], map[string]*Cluster{}
	for name, config := range configs {
		if was := before[name]; was != nil && reflect.DeepEqual(was.given, config) {
			now[name] = was
		} else {
			now[name] = f.cluster(name, config)
		}
	}
	f.secrets[s.Name] = now
	gone(before, now)
	return err
}

// Forget drops the clusters of a Secret that is no more.
func (f *Fleet) Forget(secret string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	gone(f.secrets[secret], nil)
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

// Find gives the cluster of a name, or the orchestrator's own one if no Secret has the
// name and it has the UID. Two of one name are none: nobody guesses which is meant.
func (f *Fleet) Find(ctx context.Context, name string, uid types.UID) (*Cluster, error) {
	f.lock.Lock()
	var found []*Cluster
	var in []string
	for _, secret := range slices.Sorted(maps.Keys(f.secrets)) {
		if c := f.secrets[secret][name]; c != nil {
			found, in = append(found, c), append(in, secret)
		}
	}
	refused := slices.Collect(maps.Values(f.refused))
	f.lock.Unlock()
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("the Secrets %s all hold a cluster named %q: leave one of them", strings.Join(in, " and "), name)
	case len(found) == 1:
		return found[0], nil
	}
	if end, err := f.home.Connect(); err == nil {
		if own, err := orchestrator.ClusterUID(ctx, end.Client); err == nil && own == uid {
			return f.home, nil
		}
	}
	hint := ""
	for _, err := range refused {
		hint += "; " + err.Error()
	}
	return nil, fmt.Errorf("no cluster named %q is known: put its kubeconfig into a Secret with the label %s: %s, under the key kubeconfig%s", name, Label, name, hint)
}
