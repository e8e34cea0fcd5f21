package move_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// An API server is killed, and started again by its kubelet, and the rights of the account vanish and come back, several
// times on either side and at any moment of both ways. The plan waits, and ends without a person (L3).
func TestRestartsAndRightsThatVanishDecideNothing(t *testing.T) {
	sometimes(t)
	t.Parallel()
	s := newMigration(t, reimport, options{replicas: 4, bed: ownBed(t)})
	paths := s.mover()
	reach := []string{"--yes", "--kubeconfig", paths[0], "--to-kubeconfig", paths[1]}
	before, there := s.state(s.source), s.names("destination")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	shaken := &shaken{s: s, paths: paths, started: map[*end]bool{}}
	shaken.goes(random, append([]string{"apply", s.planFile}, reach...)).expect(t, done, "moved: 4 ordinals")
	s.arrived(before)
	shaken.goes(random, append([]string{"abort", "web", "--to-namespace", s.destination.namespace}, reach...)).expect(t, done, "aborted")
	s.asBefore(before, there)
}

// shaken are two control planes that are not let alone.
type shaken struct {
	s       *migration
	paths   []string      // the kubeconfigs of the account
	started map[*end]bool // the API servers that are started again when they end
}

// goes runs a command, and disturbs it four times.
func (k *shaken) goes(random *rand.Rand, args []string) result {
	k.s.t.Helper()
	p := start(k.s.t, args...)
	for n := range 4 {
		for range 1 + random.IntN(8) {
			p.line()
		}
		side := random.IntN(2)
		on := []*end{k.s.source, k.s.destination}[side]
		select {
		case <-p.ended:
			return p.end()
		default:
		}
		if n%2 == random.IntN(2) {
			k.s.t.Logf("%s: the API server of %s is killed", time.Now().Format("15:04:05.000"), on.cluster.Name)
			k.restarts(on)
			continue
		}
		k.s.t.Logf("%s: the account has no rights in %s", time.Now().Format("15:04:05.000"), on.cluster.Name)
		k.refused(on, k.paths[side])
	}
	return p.end()
}

func (k *shaken) restarts(on *end) {
	k.s.t.Helper()
	var start func() (stop func())
	k.s.eventually("the API server is killed", func(context.Context) (ok bool) { // its scheduler may be starting again
		var err error
		start, err = on.cluster.KillServer()
		return err == nil
	})
	if !k.started[on] {
		k.started[on] = true
		k.s.t.Cleanup(start())
	}
	k.s.eventually("the API server is back", func(ctx context.Context) bool { return on.cluster.Ping(ctx) == nil })
}

// refused takes all rights off the account until the API server refuses it, and gives them back.
func (k *shaken) refused(on *end, path string) {
	k.s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		k.s.t.Fatal(err)
	}
	account, err := client.New(config, client.Options{Scheme: clusters.Scheme()})
	if err != nil {
		k.s.t.Fatal(err)
	}
	var taken []client.Object
	var wide rbacv1.ClusterRoleBindingList
	var narrow rbacv1.RoleBindingList
	k.s.list(on, &narrow)
	if err := on.List(k.s.t.Context(), &wide); err != nil {
		k.s.t.Fatal(err)
	}
	mine := func(of []rbacv1.Subject) bool {
		return slices.ContainsFunc(of, func(x rbacv1.Subject) bool { return x.Name == "mover" })
	}
	for _, b := range wide.Items {
		if mine(b.Subjects) {
			taken = append(taken, &b)
		}
	}
	for _, b := range narrow.Items {
		if mine(b.Subjects) {
			taken = append(taken, &b)
		}
	}
	if len(taken) == 0 {
		k.s.t.Fatal("the account has no rights that could be taken")
	}
	for _, b := range taken {
		if err := on.Delete(k.s.t.Context(), b); err != nil {
			k.s.t.Fatal(err)
		}
	}
	k.s.eventually("the account is refused", func(ctx context.Context) bool {
		return apierrors.IsForbidden(account.List(ctx, &corev1.PodList{}, client.InNamespace(on.namespace)))
	})
	for _, b := range taken {
		b.SetUID("")
		b.SetResourceVersion("")
		k.s.create(on, b)
	}
}
