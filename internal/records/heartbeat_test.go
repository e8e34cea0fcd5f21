package records

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

func leasesIn(t *testing.T, c client.Client) []coordinationv1.Lease {
	t.Helper()
	var list coordinationv1.LeaseList
	if err := c.List(t.Context(), &list, client.InNamespace("stsmigrate"), client.HasLabels{HeartbeatLabel}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// A process has a heartbeat from its start to its end, with the version that it can read.
func TestAnOrchestratorSaysThatItLives(t *testing.T) {
	c := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	now := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	h := NewHeartbeat(c, c, "stsmigrate", "Node_1.example/42", "v1.2.3", now)
	beat := func(of *Heartbeat) coordinationv1.Lease {
		t.Helper()
		if err := of.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := leasesIn(t, c)
		if len(list) != 1 {
			t.Fatalf("%d Leases", len(list))
		}
		return list[0]
	}
	first, second := beat(h), beat(h)
	if first.Name != "stsmigrate.orchestrator.pnode-1-example-42" || first.Annotations[madeBy] != "v1.2.3" || first.Annotations[reads] != plans.APIVersion || *first.Spec.HolderIdentity != "Node_1.example/42" {
		t.Errorf("%+v", first)
	}
	if first.ResourceVersion == second.ResourceVersion || first.UID != second.UID {
		t.Error("it is not renewed")
	}
	again := NewHeartbeat(c, c, "stsmigrate", "Node_1.example/42", "v1.2.4", now) // the container was restarted
	if l := beat(again); l.Annotations[madeBy] != "v1.2.4" {
		t.Errorf("%+v", l)
	}
	if err := c.Delete(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	if err := again.Beat(t.Context()); err == nil {
		t.Error("what somebody has deleted is renewed")
	}
	beat(again)
	again.end(t.Context())
	if list := leasesIn(t, c); len(list) > 0 {
		t.Errorf("%d are left", len(list))
	}
}

// The Lease of a killed process is deleted after a long time without a renewal, by the clock of the
// process that observes it: the clock of the killed process may have been anywhere.
func TestTheLeaseOfAKilledOrchestratorGoes(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	ahead := func() time.Time { return clock.Add(24 * time.Hour) }
	killed, alive, me := NewHeartbeat(c, c, "stsmigrate", "killed", "v1", ahead), NewHeartbeat(c, c, "stsmigrate", "alive", "v1", ahead), NewHeartbeat(c, c, "stsmigrate", "me", "v1", func() time.Time { return clock })
	for _, h := range []*Heartbeat{killed, alive, me} {
		if err := h.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []time.Duration{0, heartbeatExpiry - time.Second, heartbeatExpiry} {
		if list := leasesIn(t, c); len(list) != 3 {
			t.Fatalf("before %s: %d are left", at, len(list))
		}
		clock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(at)
		if err := errors.Join(alive.Beat(t.Context()), me.sweep(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if list := leasesIn(t, c); len(list) != 2 || list[0].Name+list[1].Name != alive.lease.Name+me.lease.Name {
		t.Errorf("left are %v", list)
	}
}

// An orchestrator counts as alive when its Lease is renewed, whatever the clocks show.
func TestAnOrchestratorIsAliveWhenItRenewsItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		renewed time.Duration // by its clock
		reads   string
		beats   bool
		want    string // "" for alive
		// requires is what the plan requires, and supports what the orchestrator tells; "-" means nothing at all.
		requires []string
		supports string
	}{
		"it lives":                            {0, plans.APIVersion, true, "", nil, ""},
		"it lives, its clock a day behind":    {-24 * time.Hour, plans.APIVersion, true, "", nil, ""},
		"it is dead, its clock a day ahead":   {24 * time.Hour, plans.APIVersion, false, "no orchestrator in namespace stsmigrate has renewed its Lease for 15s", nil, ""},
		"it has just died":                    {0, plans.APIVersion, false, "no orchestrator in namespace stsmigrate has renewed its Lease for 15s", nil, ""},
		"it is older":                         {0, "stsmigrate.dev/v1alpha0", true, "the orchestrator is the older of the two", nil, ""},
		"it supports what it takes":           {0, plans.APIVersion, true, "", []string{plans.Placeholders}, ""},
		"it does not support what it takes":   {0, plans.APIVersion, true, `does not support ["tomorrow"], which this plan of stsmigrate v9 requires: upgrade the orchestrator first`, []string{plans.Placeholders, "tomorrow"}, ""},
		"it is newer, and supports more":      {0, plans.APIVersion, true, "", []string{"tomorrow"}, "gate-expressions,placeholders,tomorrow"},
		"it tells nothing, and is old enough": {0, plans.APIVersion, true, "", []string{plans.Placeholders}, "-"},
		"it tells nothing, and is too old":    {0, plans.APIVersion, true, `does not support ["tomorrow"]`, []string{"tomorrow"}, "-"},
		"it is newer":                         {0, "stsmigrate.dev/v2", true, "this stsmigrate is the older of the two", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
				h := NewHeartbeat(home, home, "stsmigrate", "host/1", "v1.2.3", func() time.Time { return time.Now().Add(c.renewed) }) //nolint:forbidigo // that of the test
				h.lease.Annotations[reads], h.lease.Annotations[supports] = c.reads, cmp.Or(c.supports, h.lease.Annotations[supports])
				if c.supports == "-" {
					delete(h.lease.Annotations, supports)
				}
				if err := h.Beat(t.Context()); err != nil {
					t.Fatal(err)
				}
				events := watch.NewFake()
				of := fake.NewSimpleMetadataClient(fake.NewTestScheme())
				of.PrependWatchReactor("leases", clienttesting.DefaultWatchReactor(events, nil))
				if c.beats {
					go events.Modify(&metav1.PartialObjectMetadata{ObjectMeta: h.have.ObjectMeta})
				}
				s, err := Alive(t.Context(), home, &clusters.Watches{Of: of}, "stsmigrate", "v9", c.requires)
				if c.want == "" && (err != nil || s.Version != "v1.2.3") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%+v, %v; expected %q", s, err, c.want)
				}
			})
		})
	}
}

func TestWhoSeesNoOrchestratorSaysWhy(t *testing.T) {
	c := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	var none ErrNoOrchestrator
	if _, err := Alive(t.Context(), c, nil, "stsmigrate", "v9", nil); !errors.As(err, &none) || err.Error() != "there is no orchestrator in namespace stsmigrate" {
		t.Errorf("%v", err)
	}
	barred := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
	}})
	if _, err := Alive(t.Context(), barred, nil, "stsmigrate", "v9", nil); !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}

// While replicas are upgraded, one that reads the plan is enough.
func TestOneOrchestratorThatReadsThePlanIsEnough(t *testing.T) {
	for name, beats := range map[string]bool{"the newer one lives": true, "the newer one is dead": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				home := clientfake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
				older, newer := NewHeartbeat(home, home, "stsmigrate", "older", "v1", time.Now), NewHeartbeat(home, home, "stsmigrate", "newer", "v2", time.Now) //nolint:forbidigo // that of the test
				newer.lease.Annotations[supports] = "tomorrow"
				if err := errors.Join(older.Beat(t.Context()), newer.Beat(t.Context())); err != nil {
					t.Fatal(err)
				}
				events := watch.NewFake()
				of := fake.NewSimpleMetadataClient(fake.NewTestScheme())
				of.PrependWatchReactor("leases", clienttesting.DefaultWatchReactor(events, nil))
				go func() {
					events.Modify(&metav1.PartialObjectMetadata{ObjectMeta: older.have.ObjectMeta})
					if beats {
						events.Modify(&metav1.PartialObjectMetadata{ObjectMeta: newer.have.ObjectMeta})
					}
				}()
				s, err := Alive(t.Context(), home, &clusters.Watches{Of: of}, "stsmigrate", "v2", []string{"tomorrow"})
				if beats && (err != nil || s.Version != "v2") || !beats && !errors.As(err, new(ErrOtherVersion)) {
					t.Errorf("%+v, %v", s, err)
				}
			})
		})
	}
}
