package slicecontroller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stsmigrate/stsmigrate/slicecontroller/admission"
	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// Options say what a process takes care of, and how.
type Options struct {
	// Namespace is its own: the guard's canary and the Lease of the leader are there.
	Namespace   string
	LeaderElect bool
	// Namespaces are those whose slices are taken care of, with rights there alone; none for all.
	Namespaces []string
	// MetricsAddress, HealthAddress and WebhookAddress are host:port, or "0" for none. Only
	// slices have a webhook.
	MetricsAddress, HealthAddress, WebhookAddress string
	// SecureMetrics asks who wants to see the metrics, and serves them by TLS, with the tls.crt and tls.key of
	// MetricsCertDir or, without one, a certificate that is made at start.
	SecureMetrics  bool
	MetricsCertDir string
	// WebhookCertDir has the webhook's tls.crt and tls.key; they are read again when they
	// change.
	WebhookCertDir string
	// Guard looks for another controller of StatefulSets before the first pass.
	Guard bool
	// StateMetrics tells of sets what kube-state-metrics would (MT-8).
	StateMetrics bool
	// Workers is how many sets are looked at at once.
	Workers int
	// Gates are the traits that feature gates decide.
	Gates core.Traits
	// MaxUnavailable says that its gate was switched on or off; nil for neither: then StatefulSets have it as the
	// built-in controller has.
	MaxUnavailable *bool
	// EmulatedVersion is the Kubernetes, 1.36 say, whose rules StatefulSets are taken care of by; "" for that of the
	// API server, which must not be newer than this release.
	EmulatedVersion string
	// Now is the clock.
	Now func() time.Time
}

// The back-off of a set whose pass has failed.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 5 * time.Minute
)

// Run takes care of the StatefulSetSlices of a cluster until ctx ends. Their kind must
// have been installed.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	return run(ctx, config, sliced(o.Gates), o)
}

// RunNative takes care of the StatefulSets of a cluster, in place of the built-in
// controller, until ctx ends. It must be the only one that does: ErrAnother.
func RunNative(ctx context.Context, config *rest.Config, o Options) error {
	o.WebhookAddress = "" // the API server itself answers for StatefulSets
	minor, err := ruled(config, o.EmulatedVersion)
	if err != nil {
		return err
	}
	log.Log.WithName("rules").Info("StatefulSets are taken care of as the built-in controller does it", "kubernetes", fmt.Sprintf("1.%d", minor))
	return run(ctx, config, native(followed(minor, o)), o)
}

func run(ctx context.Context, config *rest.Config, k kind, o Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return err
	}
	hooks, err := serving(o)
	if err != nil {
		return err
	}
	m, err := manager.New(config, manager.Options{
		WebhookServer:          hooks,
		Scheme:                 scheme,
		Cache:                  cache.Options{DefaultNamespaces: only(o.Namespaces), DefaultTransform: cache.TransformStripManagedFields(), ByObject: slim(k.gvk), ReaderFailOnMissingInformer: true},
		Metrics:                told(o),
		HealthProbeBindAddress: o.HealthAddress,
		LeaderElection:         o.LeaderElect, LeaderElectionID: k.lease, LeaderElectionNamespace: o.Namespace,
		LeaderElectionReleaseOnCancel: true, // Run is the last thing that the process does
	})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	if hooks != nil {
		if err := admit(m, config, o.Gates); err != nil {
			return err
		}
	}
	live, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	var guard *canary
	if k.guarded && o.Guard {
		guard = newGuard(live, o.Namespace)
	}
	c, err := reconciling(ctx, config, m, k, o, guard)
	if err != nil {
		return err
	}
	// With several replicas the guard has to wait until this one leads: the leader before
	// it would take care of the canary.
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := k.fit(ctx, live, config); err != nil {
			return err
		}
		if guard == nil {
			return c.Start(ctx)
		}
		return guard.keep(ctx, c.Start)
	}))
	if err != nil {
		return err
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	return m.Start(ctx)
}

// only are the namespaces that are watched; nil for all.
func only(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	out := map[string]cache.Config{}
	for _, n := range namespaces {
		out[n] = cache.Config{}
	}
	return out
}

// told is how the metrics are served.
func told(o Options) server.Options {
	out := server.Options{BindAddress: o.MetricsAddress}
	if o.SecureMetrics {
		out.SecureServing, out.FilterProvider, out.CertDir = true, filters.WithAuthenticationAndAuthorization, o.MetricsCertDir
	}
	return out
}

// serving is the server of the webhook, or nil if none is wanted.
func serving(o Options) (webhook.Server, error) {
	if o.WebhookAddress == "" || o.WebhookAddress == "0" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return nil, fmt.Errorf("the address of the webhook: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("the address of the webhook is %s: expected host:port", o.WebhookAddress)
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: int(n), CertDir: o.WebhookCertDir}), nil
}

// admit lets every replica answer for slices, also those that do not lead.
func admit(m manager.Manager, config *rest.Config, off core.Traits) error {
	live, err := client.New(config, client.Options{Scheme: m.GetScheme()})
	if err != nil {
		return err
	}
	hooks := m.GetWebhookServer() // which has it started with the rest
	hooks.Register(admission.Path, ctrladmission.WithValidator(m.GetScheme(), admission.Validator{Live: live, Off: off}))
	return m.AddReadyzCheck("webhook", hooks.StartedChecker())
}

// reconciling is the controller, with everything that wakes it.
func reconciling(ctx context.Context, config *rest.Config, m manager.Manager, k kind, o Options, guard *canary) (controller.Controller, error) {
	for _, i := range indexes() {
		if err := m.GetFieldIndexer().IndexField(ctx, i.of, i.name, i.values); err != nil {
			return nil, err
		}
	}
	gauges := newGauges()
	if err := gauges.register(metrics.Registry); err != nil {
		return nil, err
	}
	if o.StateMetrics {
		if err := metrics.Registry.Register(stateMetrics{ctx, k, m.GetClient()}); err != nil {
			return nil, err
		}
	}
	c1, err := typedcorev1.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		kind: k, client: m.GetClient(), live: m.GetAPIReader(), evictions: c1.RESTClient(), events: recorder(ctx, c1, m, k), now: o.Now, ledger: newLedger(), gauges: gauges, canary: guard,
		memories: map[types.NamespacedName]*memory{},
	}
	c, err := controller.NewUnmanaged("statefulset", controller.Options{
		Reconciler: r, MaxConcurrentReconciles: o.Workers, Logger: m.GetLogger(),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
	})
	if err != nil {
		return nil, err
	}
	for _, s := range r.sources(m.GetCache()) {
		if err := c.Watch(s); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// recorder records events in core/v1, with the source that people look for (EV-1).
func recorder(ctx context.Context, c *typedcorev1.CoreV1Client, m manager.Manager, k kind) record.EventRecorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(sink{&typedcorev1.EventSinkImpl{Interface: c.Events("")}})
	return b.NewRecorder(m.GetScheme(), corev1.EventSource{Component: k.component})
}
