package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

const (
	home    = "stsmigrate"
	account = "orchestrator"
)

// install follows the documentation: the orchestrator in east, its account in west, and a Secret with its
// credentials. The pods of the Deployment are pods of the bed, which run nothing.
func (s *storm) install(ctx context.Context) error {
	components := []string{"orchestrator", "policies"}
	if s.open {
		components = components[:1]
	}
	if err := s.person(ctx, append([]string{"install", "--context", "east", "--apply"}, components...)...); err != nil {
		return err
	}
	if err := s.person(ctx, "install", "--context", "west", "--apply", "account", "policies"); err != nil {
		return err
	}
	own, err := s.credentials(ctx, s.east, s.bed.East)
	if err != nil {
		return err
	}
	s.replicas.kubeconfig = filepath.Join(s.dir, "orchestrator.kubeconfig")
	if err := clientcmd.WriteToFile(*own, s.replicas.kubeconfig); err != nil {
		return err
	}
	secret, err := s.secret(ctx)
	if err != nil {
		return err
	}
	for _, o := range append(baits(), secret) {
		if err := s.east.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// secret returns a Secret with new credentials for west.
func (s *storm) secret(ctx context.Context) (*corev1.Secret, error) {
	west, err := s.credentials(ctx, s.west, s.bed.West)
	if err != nil {
		return nil, err
	}
	raw, err := clientcmd.Write(*west)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "west", Labels: map[string]string{fleet.Label: "west"}},
		Data:       map[string][]byte{"kubeconfig": raw},
	}, err
}

// credentials creates a kubeconfig for the account of the orchestrator.
func (s *storm) credentials(ctx context.Context, at client.Client, c *cluster.Cluster) (*clientcmdapi.Config, error) {
	config, token, err := fixture.Credentials(ctx, at, c, home, account)
	if err != nil {
		return nil, err
	}
	s.tokens = append(s.tokens, token)
	return config, nil
}

// rotate ends the credentials for west, and creates new ones a moment later.
func (s *storm) rotate(ctx context.Context) error {
	if s.renew == 0 {
		return nil
	}
	if !pause(ctx, s.renew) {
		return errors.New("the storm was over before the credentials were replaced; see -renew")
	}
	s.say("the credentials for west are no longer good")
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: account}}
	if err := s.west.Delete(ctx, who.DeepCopy()); err != nil {
		return err
	}
	if !pause(ctx, 3*time.Second) {
		return errors.New("the storm was over before there were new credentials")
	}
	if err := s.west.Create(ctx, who); err != nil {
		return err
	}
	secret, err := s.secret(ctx)
	if err != nil {
		return err
	}
	s.say("there are new ones")
	return s.east.Update(ctx, secret)
}

// away stops the API server of the destination for a while.
func (s *storm) away(ctx context.Context) error {
	if s.outage == 0 {
		return nil
	}
	if !pause(ctx, s.fail) {
		return errors.New("the storm was over before the API server was killed; see -fail")
	}
	s.say("the API server of west is killed")
	start, err := s.bed.West.KillServer()
	if err != nil {
		return err
	}
	pause(ctx, s.outage)
	s.say("it is started again")
	s.server = start()
	return nil
}

// answers waits until the API server of west responds.
func (s *storm) answers(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.west.List(ctx, &corev1.NamespaceList{}) == nil, nil
	})
}

// pause waits for d, and reports whether it was not cancelled.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// patience is far longer than the moves of a storm take.
const patience = 2 * time.Hour

// records follows the records of the plans until the context ends. An API server ends every watch after half an
// hour to an hour, so the watch is opened again then.
func (s *storm) records(ctx context.Context) <-chan watch.Event {
	out := make(chan watch.Event)
	go func() {
		defer close(out)
		for ctx.Err() == nil {
			w, err := s.east.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(home), client.HasLabels{plans.PlanLabel})
			if err != nil {
				s.say("following the plans: %s", err)
				return
			}
			for e := range w.ResultChan() {
				select {
				case out <- e:
				case <-ctx.Done():
				}
			}
			w.Stop()
		}
	}()
	return out
}

// until waits until all plans have reached the outcome. It returns since when each was seen to have.
func (s *storm) until(ctx context.Context, all []*moving, outcome plans.Outcome) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	there := map[string]time.Time{}
	wanted := map[string]bool{}
	for _, m := range all {
		wanted[m.name] = true
	}
	now := time.NewTicker(30 * time.Second)
	defer now.Stop()
	events := s.records(ctx)
	for open := true; open && len(there) < len(all); {
		var e watch.Event
		select {
		case e, open = <-events:
			name, err := reached(e, outcome)
			if err != nil {
				return there, err
			}
			if _, known := there[name]; wanted[name] && !known {
				there[name] = time.Now()
			}
		case <-now.C:
			s.say("%d of %d are %s; the most memory of one is %d MiB", len(there), len(all), strings.ToLower(string(outcome)), s.replicas.most()>>20)
		}
	}
	if len(there) == len(all) {
		return there, nil
	}
	var missing []string
	for _, m := range all {
		if there[m.name].IsZero() {
			missing = append(missing, m.name)
		}
	}
	return there, fmt.Errorf("not %s: %s: %w", outcome, strings.Join(missing, ", "), cmp.Or(ctx.Err(), errors.New("the watch has ended")))
}

// reached returns the plan of an event if it has the outcome. It returns an error for a plan that is blocked.
func reached(e watch.Event, outcome plans.Outcome) (string, error) {
	name, j, err := journalOf(e)
	switch {
	case err != nil || j == nil || name == hindered || strings.HasPrefix(name, hostile):
		return "", err
	case j.Blocked != "":
		return "", fmt.Errorf("plan %s is blocked: %s", name, j.Blocked)
	case j.Outcome != outcome:
		return "", nil
	}
	return name, nil
}

// leftovers lists the objects that still carry a mark of ours, in the namespaces of the sets and on volumes
// (S15).
func (s *storm) leftovers(ctx context.Context, all []*moving) ([]string, error) {
	var out []string
	for name, at := range map[string]client.Client{"east": s.east, "west": s.west} {
		for _, list := range []client.ObjectList{
			&appsv1.StatefulSetList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{},
			&discoveryv1.EndpointSliceList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.PodList{},
		} {
			if err := at.List(ctx, list); err != nil {
				return nil, err
			}
			err := meta.EachListItem(list, func(o runtime.Object) error {
				m, err := meta.Accessor(o)
				if err != nil || m.GetNamespace() == home {
					return err
				}
				if marked(m) {
					out = append(out, fmt.Sprintf("%s: %T %s/%s is marked still: %v %v", name, o, m.GetNamespace(), m.GetName(), m.GetLabels(), m.GetAnnotations()))
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	for _, m := range all {
		err := s.east.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: fixture.Name}, &appsv1.StatefulSet{})
		if !apierrors.IsNotFound(err) {
			out = append(out, fmt.Sprintf("east: the set of %s is there still (%v)", m.name, err))
		}
	}
	return out, nil
}

// shown lists the plans that are not shown as ready to tools that rely on conditions.
func (s *storm) shown(ctx context.Context, all []*moving) (out []string, err error) {
	for _, m := range all {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(plans.APIVersion)
		o.SetKind("StatefulSetMigration")
		if err := s.east.Get(ctx, client.ObjectKey{Namespace: home, Name: m.name}, o); err != nil {
			return nil, err
		}
		if is, err := kstatus.Compute(o); err != nil || is.Status != kstatus.CurrentStatus {
			out = append(out, fmt.Sprintf("StatefulSetMigration %s is not shown to be ready: %v (%v)", m.name, is, err))
		}
	}
	return out, nil
}

func marked(m metav1.Object) bool {
	for _, of := range []map[string]string{m.GetLabels(), m.GetAnnotations()} {
		for k, v := range of {
			if strings.Contains(k, "stsmigrate.dev") && k != "stsmigrate.dev/install" && !strings.Contains(v, "kubectl") { // an install keeps its own marks
				return true
			}
		}
	}
	return strings.Contains(strings.Join(m.GetFinalizers(), " "), "stsmigrate.dev")
}
