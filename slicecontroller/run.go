package slicecontroller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
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

// Options are the settings of a slice controller process.
type Options struct {
	// Namespace is the namespace of the process. It holds the guard's canary and the Lease of the leader.
	Namespace   string
	LeaderElect bool
	// Namespaces are those whose slices are reconciled, with rights in these
	// namespaces only. None means all.
	Namespaces []string
	// MetricsAddress, HealthAddress and WebhookAddress are host:port, or "0" for none. Only
	// slices have a webhook.
	MetricsAddress, HealthAddress, WebhookAddress string
	// SecureMetrics authenticates and authorizes each request for the metrics, and serves them
	// over TLS. The certificate is tls.crt and tls.key of MetricsCertDir or, without one, a
	// certificate generated at start.
	SecureMetrics  bool
	MetricsCertDir string
	// WebhookCertDir holds tls.crt and tls.key of the webhook. They are read again when they change.
	WebhookCertDir string
	// Guard checks for another controller of StatefulSets, BEFORE the first pass and then continuously.
	Guard bool
	// StateMetrics exposes the metrics of sets that kube-state-metrics would expose (MT-8).
	StateMetrics bool
	// Workers is the number of sets that are reconciled at once.
	Workers int
	// Gates are the traits that the feature gates decide.
	Gates core.Traits
	// MaxUnavailable is the value of its feature gate. It is nil if the gate is not set: then StatefulSets
	// follow the built-in controller.
	MaxUnavailable *bool
	// EmulatedVersion is the Kubernetes version, such as 1.36, whose rules apply to StatefulSets. "" means
	// the version of the API server, which must not be newer than this release.
	EmulatedVersion string
	// Now is the clock.
	Now func() time.Time
}

// The back-off of a set after a failed pass.
const (
	minBackoff = 5 * time.Millisecond
	maxBackoff = 5 * time.Minute
)

// Run reconciles the StatefulSetSlices of a cluster until ctx ends. Their
// CustomResourceDefinition must be installed.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	return run(ctx, config, sliced(o.Gates), o)
}

// RunNative reconciles the StatefulSets of a cluster, in place of the built-in controller, until ctx ends.
// No other controller may reconcile them: if one does, RunNative returns ErrAnother.
func RunNative(ctx context.Context, config *rest.Config, o Options) error {
	o.WebhookAddress = "" // the API server validates StatefulSets itself
	minor, err := ruled(config, o.EmulatedVersion)
	if err != nil {
		return err
	}
	log.Log.WithName("rules").Info("StatefulSets follow the rules of the built-in controller of this Kubernetes version", "kubernetes", fmt.Sprintf("1.%d", minor))
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
	// With several replicas the guard must wait until this replica leads: the previous
	// leader would reconcile the canary.
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		look := func(ctx context.Context) error { return k.fit(ctx, live, config) }
		if err := look(ctx); err != nil {
			return err
		}
		start := func(ctx context.Context) error { return fitting(ctx, fitEvery, look, c.Start) }
		if guard == nil {
			return start(ctx)
		}
		return guard.keep(ctx, start)
	}))
	if err != nil {
		return err
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return err
	}
	return m.Start(ctx)
}

// only returns the cache options of the watched namespaces, or nil for all namespaces.
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

// told returns the options of the metrics server.
func told(o Options) server.Options {
	out := server.Options{BindAddress: o.MetricsAddress}
	if o.SecureMetrics {
		out.SecureServing, out.FilterProvider, out.CertDir = true, filters.WithAuthenticationAndAuthorization, o.MetricsCertDir
	}
	return out
}

// serving returns the server of the webhook, or nil if the webhook is switched off.
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

// admit lets every replica serve the webhook, including those that do not lead.
func admit(m manager.Manager, config *rest.Config, off core.Traits) error {
	live, err := client.New(config, client.Options{Scheme: m.GetScheme()})
	if err != nil {
		return err
	}
	hooks := m.GetWebhookServer() // this call adds the server to the manager, which starts it
	hooks.Register(admission.Path, ctrladmission.WithValidator(m.GetScheme(), admission.Validator{Live: live, Off: off}))
	return m.AddReadyzCheck("webhook", hooks.StartedChecker())
}

// reconciling returns the controller with all its event sources.
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
	binary := rest.CopyConfig(config) // there are as many events as writes, and JSON costs several times as much
	binary.ContentType, binary.AcceptContentTypes = runtime.ContentTypeProtobuf, strings.Join([]string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}, ",")
	c1, err := typedcorev1.NewForConfigAndClient(binary, m.GetHTTPClient())
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

// recorder records events in core/v1, with the source that users look for (EV-1).
func recorder(ctx context.Context, c *typedcorev1.CoreV1Client, m manager.Manager, k kind) record.EventRecorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(sink{&typedcorev1.EventSinkImpl{Interface: c.Events("")}})
	return b.NewRecorder(m.GetScheme(), corev1.EventSource{Component: k.component})
}
