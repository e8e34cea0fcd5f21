package records

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Sign is the heartbeat of a live orchestrator.
type Sign struct {
	// Version is the version of the program, and Reads the API version of the plans that it reads.
	Version, Reads string
	// Missing is what the plan requires and this orchestrator does not support.
	Missing []string
	// Known is the clusters that it knows; nil if it does not tell.
	Known *Known
}

// Lacks returns an error if the orchestrator does not know a cluster of a plan. One that does not tell is believed to know it.
func (s Sign) Lacks(p *plans.Plan) error {
	if s.Known == nil {
		return nil
	}
	for _, side := range plans.Sides() {
		if ref := p.On(side); ref.Cluster != s.Known.Own && !slices.Contains(s.Known.Names, ref.Context) {
			return reasons.Because(reasons.ClusterUnknown, fmt.Errorf("the orchestrator knows no cluster named %q, in which the %s of plan %s is", ref.Context, side, p.Name))
		}
	}
	return nil
}

// ErrNoOrchestrator reports that no orchestrator is alive in a namespace.
type ErrNoOrchestrator struct {
	Namespace string
	// Waited is how long no heartbeat was observed; 0 if there is no Lease of an orchestrator at all.
	Waited time.Duration
}

func (e ErrNoOrchestrator) Error() string {
	if e.Waited == 0 {
		return fmt.Sprintf("there is no orchestrator in namespace %s", e.Namespace)
	}
	return fmt.Sprintf("no orchestrator in namespace %s has renewed its Lease for %s", e.Namespace, e.Waited)
}

// ReasonID implements reasons.Reasoned.
func (e ErrNoOrchestrator) ReasonID() reasons.ID { return reasons.NoOrchestrator }

// ErrOtherVersion reports that an orchestrator and this program cannot read each other's plans, or not this one.
type ErrOtherVersion struct {
	Namespace, Mine string
	Sign            Sign
}

func (e ErrOtherVersion) Error() string {
	if e.Sign.Reads == plans.APIVersion {
		return fmt.Sprintf("the orchestrator in namespace %s (%s) does not support %q, which this plan of stsmigrate %s requires: upgrade the orchestrator first", e.Namespace, e.Sign.Version, e.Sign.Missing, e.Mine)
	}
	older := "this stsmigrate is the older of the two: use that of the orchestrator's version"
	if generation(e.Sign.Reads, plans.APIVersion) < 0 {
		older = "the orchestrator is the older of the two: upgrade it first"
	}
	return fmt.Sprintf("the orchestrator in namespace %s (%s) reads plans of version %q, and this stsmigrate (%s) writes %q: %s", e.Namespace, e.Sign.Version, e.Sign.Reads, e.Mine, plans.APIVersion, older)
}

// ReasonID implements reasons.Reasoned.
func (e ErrOtherVersion) ReasonID() reasons.ID { return reasons.OtherVersion }

// generation compares two API versions by the rules of Kubernetes; it is negative if a is the older one.
func generation(a, b string) int {
	_, a, _ = strings.Cut(a, "/")
	_, b, _ = strings.Cut(b, "/")
	return version.CompareKubeAwareVersionStrings(a, b)
}

// Alive waits for the heartbeat of an orchestrator that reads the plans of this program (mine is its version) and
// supports what a plan requires, for as long as a live one may take: LeaseSeconds. It trusts no clock of another
// process: only an observed renewal of a Lease counts. It returns ErrNoOrchestrator or ErrOtherVersion if it finds none.
func Alive(ctx context.Context, home client.Client, on *clusters.Watches, namespace, mine string, requires []string) (Sign, error) {
	var list coordinationv1.LeaseList
	if err := home.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{HeartbeatLabel}); err != nil {
		return Sign{}, fmt.Errorf("listing the Leases of orchestrators in namespace %s: %w", namespace, err)
	}
	another := anyFits(list.Items, requires)
	if len(list.Items) == 0 {
		return Sign{}, ErrNoOrchestrator{Namespace: namespace}
	}
	patience := LeaseSeconds * time.Second
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	news, err := on.Of.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(namespace).
		Watch(waiting, metav1.ListOptions{LabelSelector: HeartbeatLabel, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return Sign{}, fmt.Errorf("watching the Leases of orchestrators in namespace %s: %w", namespace, err)
	}
	defer news.Stop()
	var other error
	for {
		select {
		case e, open := <-news.ResultChan():
			if err := broken(e, open, namespace); err != nil && waiting.Err() == nil {
				return Sign{}, err
			}
			if e.Type == watch.Added || e.Type == watch.Modified {
				s, err := signOf(e, requires)
				if err != nil || s.fits() {
					return s, err
				}
				if other = (ErrOtherVersion{namespace, mine, s}); !another { // no other one may be alive
					return s, other
				}
			}
		case <-waiting.Done():
		}
		if waiting.Err() != nil {
			return Sign{}, errors.Join(ctx.Err(), cmp.Or(other, error(ErrNoOrchestrator{namespace, patience})))
		}
	}
}

// anyFits reports whether one of some orchestrators, which may be dead, can read a plan.
func anyFits(all []coordinationv1.Lease, requires []string) bool {
	return slices.ContainsFunc(all, func(l coordinationv1.Lease) bool {
		s, err := signIn(&l, requires)
		return err == nil && s.fits()
	})
}

// broken returns an error for the end of a watch.
func broken(e watch.Event, open bool, namespace string) error {
	switch {
	case !open:
		return fmt.Errorf("the watch of the Leases of orchestrators in namespace %s has ended; try again", namespace)
	case e.Type == watch.Error:
		return fmt.Errorf("watching the Leases of orchestrators in namespace %s: %w", namespace, apierrors.FromObject(e.Object))
	}
	return nil
}

func signOf(e watch.Event, requires []string) (Sign, error) {
	l, err := meta.Accessor(e.Object)
	if err != nil {
		return Sign{}, err
	}
	return signIn(l, requires)
}

// signIn reads the Lease of an orchestrator.
func signIn(l metav1.Object, requires []string) (Sign, error) {
	s := Sign{Version: l.GetAnnotations()[madeBy], Reads: l.GetAnnotations()[reads]}
	has := plans.SupportedUntold()
	if told, ok := l.GetAnnotations()[supports]; ok {
		has = strings.Split(told, ",")
	}
	s.Missing = slices.DeleteFunc(slices.Clone(requires), func(what string) bool { return slices.Contains(has, what) })
	if told := l.GetAnnotations()[knows]; told != "" {
		if err := json.Unmarshal([]byte(told), &s.Known); err != nil {
			return s, fmt.Errorf("annotation %s of Lease %s/%s: %w", knows, l.GetNamespace(), l.GetName(), err)
		}
	}
	return s, nil
}

// fits reports whether the orchestrator can read the plan.
func (s Sign) fits() bool { return s.Reads == plans.APIVersion && len(s.Missing) == 0 }
