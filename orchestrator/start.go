package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/orchestrator/notify"
)

// Options configure the process.
type Options struct {
	// Namespace is the namespace of the plans and of the Secrets with clusters.
	Namespace string
	// These addresses are host:port, or "0" for none. SecureMetrics authenticates and authorizes readers
	// of the metrics, and serves them over TLS. The certificate is tls.crt and tls.key of
	// MetricsCertDir, or one made at start if that is empty.
	MetricsAddress, HealthAddress, ProfileAddress string
	SecureMetrics                                 bool
	MetricsCertDir                                string
	StepTimeout                                   time.Duration
	Limits                                        fleet.Limits
	// Waves is how many waves may be under way in a cluster at once; 0 means no limit.
	Waves int
	// MaxPlans and ForgetAfter are those of Setup.
	MaxPlans    int
	ForgetAfter time.Duration
	Requests
	// Agent is the user agent that the process sends to API servers.
	Agent string
	Release
	// Loopback lets Secrets name clusters on this machine, for test beds.
	Loopback bool
	Now      func() time.Time
	// DashboardAddress is host:port of the page of all plans, or "0" for none, and DashboardCertDir is as
	// MetricsCertDir.
	DashboardAddress, DashboardCertDir string
	// Receiver is told how the states of plans change; without a URL there is none.
	Receiver notify.Target
	// Spans receives the traces of plans; nil means that none are sent.
	Spans sdktrace.SpanExporter
}

// shutdownTimeout is how long a process that was asked to end waits for the writes under way.
const shutdownTimeout = 20 * time.Second

// Run carries out the plans of a namespace until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return err
	}
	serving := server.Options{BindAddress: o.MetricsAddress}
	if o.SecureMetrics {
		serving.SecureServing, serving.FilterProvider, serving.CertDir = true, filters.WithAuthenticationAndAuthorization, o.MetricsCertDir
	}
	patience := shutdownTimeout + 5*time.Second
	m, err := manager.New(transport.Careful(config), manager.Options{
		Scheme: scheme, Metrics: serving, HealthProbeBindAddress: o.HealthAddress, PprofBindAddress: o.ProfileAddress, GracefulShutdownTimeout: &patience,
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}}, // StatefulSetMigrations are read as they are sent (package records)
		Cache:  cached(o.Namespace, o.RequestsFrom),
	})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	h, err := assemble(ctx, config, m, o)
	if err != nil {
		return err
	}
	if err := h.announce(config, m, o); err != nil {
		return err
	}
	if o.DashboardAddress != "0" && o.DashboardAddress != "" {
		if err := m.Add(h.servePage(o.DashboardAddress, o.DashboardCertDir)); err != nil {
			return err
		}
	}
	if err := errors.Join(
		h.watch(m), m.Add(manager.RunnableFunc(h.serve)), m.Add(manager.RunnableFunc(h.live)),
		m.AddHealthzCheck("pulse", h.pulse.check), m.AddReadyzCheck("caches", synced(m.GetCache())),
	); err != nil {
		return err
	}
	defer h.spans.end(ctx)
	return m.Start(ctx)
}

// synced reports that the process knows its namespace.
func synced(c cache.Cache) healthz.Checker {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second/2)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("what the namespace contains is not known yet")
		}
		return nil
	}
}

// announce has the changes of states sent, if there is a receiver.
func (h *Orchestrator) announce(config *rest.Config, m manager.Manager, o Options) error {
	if o.Receiver.URL == "" {
		return nil
	}
	to, err := noticesTo(&h.memory, o.Receiver, o.Agent)
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	h.notices = to
	leases, err := coordinationv1client.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return err
	}
	return m.Add(to.elect(leases))
}

func assemble(ctx context.Context, config *rest.Config, m manager.Manager, o Options) (*Orchestrator, error) {
	live, err := client.New(config, client.Options{Scheme: m.GetScheme(), HTTPClient: m.GetHTTPClient()})
	if err != nil {
		return nil, err
	}
	c, err := typedcorev1.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	if err := kindMissing(m.GetRESTMapper(), o.Namespace); err != nil {
		return nil, err
	}
	own, err := clusters.ClusterUID(ctx, live) // BEFORE any Secret: no Secret may stand for this cluster
	if err != nil {
		return nil, err
	}
	g, err := newGauges(metrics.Registry)
	if err != nil {
		return nil, err
	}
	spans, err := newTracer(ctx, o.Spans)
	if err != nil {
		return nil, err
	}
	b := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(correlation()))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.Events(o.Namespace)})
	return New(Setup{
		Fleet:  fleet.New(fleet.Setup{Home: config, Own: own, Limits: o.Limits, Agent: o.Agent, Loopback: o.Loopback}),
		gauges: g, spans: spans, Live: live, Cached: m.GetClient(), Namespace: o.Namespace, Slots: wavelimit.New(o.Waves), MaxPlans: o.MaxPlans, ForgetAfter: o.ForgetAfter, Requests: o.Requests,
		Board: dashboard.NewBoard(), Release: o.Release, Holder: clusters.Holder(), Dead: clusters.Dead, Now: o.Now, StepTimeout: o.StepTimeout,
		Events: b.NewRecorder(m.GetScheme(), corev1.EventSource{Component: "stsmigrate"}),
	}), nil
}

// watch reconciles plans when anything about them changes, and passes Secrets to the fleet.
func (h *Orchestrator) watch(m manager.Manager) error {
	c, err := controller.New("plan", m, controller.Options{Reconciler: h, MaxConcurrentReconciles: 4})
	if err != nil {
		return err
	}
	of := handler.EnqueueRequestsFromMapFunc(plansOf(h.Namespace))
	return errors.Join(
		c.Watch(source.Kind[client.Object](m.GetCache(), &corev1.ConfigMap{}, of)),
		c.Watch(source.Kind[client.Object](m.GetCache(), &coordinationv1.Lease{}, of)),
		c.Watch(source.Kind[client.Object](m.GetCache(), records.NewDeclared("", ""), of)),
		c.Watch(source.Channel(h.news, of)),
		c.Watch(source.Kind[client.Object](m.GetCache(), &corev1.Secret{}, h.secrets())),
	)
}

// secrets passes Secrets to the fleet. It wakes only the plans that wait for a cluster.
func (h *Orchestrator) secrets() handler.EventHandler {
	learn := func(o client.Object) {
		s, ok := o.(*corev1.Secret)
		if !ok {
			return
		}
		known := 1.0
		if err := h.Learn(s); err != nil {
			log.Log.WithName("clusters").Info("refused", "reason", err.Error())
			h.Events.Event(s, corev1.EventTypeWarning, refused, err.Error())
			known = 0
		}
		if fleet.Holds(s) {
			h.gauges.clusters.WithLabelValues(s.Name).Set(known)
		} else {
			h.gauges.clusters.DeleteLabelValues(s.Name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { learn(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				learn(e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			h.Fleet.Forget(e.Object.GetName())
			h.gauges.clusters.DeleteLabelValues(e.Object.GetName())
		},
	}
}

// serve waits until the process is asked to end, and then for the runs to stop.
func (h *Orchestrator) serve(ctx context.Context) error {
	<-ctx.Done()
	h.lock.Lock()
	h.ending = true
	for _, r := range h.running() {
		r.end()
	}
	h.lock.Unlock()
	over := make(chan struct{})
	go func() { h.all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(shutdownTimeout): // the journals record what is under way: other processes continue it
	}
	return nil
}

// live renews the heartbeat of this process until it is asked to end. From then on the process takes no
// plan.
func (m *memory) live(ctx context.Context) error {
	beats := records.NewHeartbeat(m.Live, m.Cached, m.Namespace, m.Holder, m.Version, m.Now)
	beats.Known = func() records.Known { return records.Known{Own: m.Fleet.Own, Names: m.Fleet.Names()} }
	beats.Keep(ctx, func(renewed, swept error) {
		m.pulse.beat(renewed)
		text, err := "", errors.Join(renewed, swept)
		if err != nil {
			text = err.Error()
		}
		if m.isNewsOfAll(aboutLife, text) && err != nil {
			log.Log.WithName("orchestrator").Info("the heartbeat has failed: clients may take this orchestrator for dead", "error", text)
		}
	})
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
