package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan knows a cluster by the UID of a namespace: of kube-system, or of one that a user without rights in the whole cluster
// may read. Two contexts of one cluster must never be taken for two clusters, nor the reverse. So both sides are known in
// the same way, and what cannot be proven is refused.

// ClusterUID returns the identity of a cluster: the UID of its kube-system namespace.
func ClusterUID(ctx context.Context, c client.Client) (types.UID, error) {
	return namespaceUID(ctx, c, metav1.NamespaceSystem)
}

// UIDOf returns the identity of the cluster that a client reaches, read as a plan knows that of the set.
func UIDOf(ctx context.Context, c client.Client, set plans.Ref) (types.UID, error) {
	return namespaceUID(ctx, c, set.Identity())
}

func namespaceUID(ctx context.Context, c client.Client, name string) (types.UID, error) {
	var ns corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
		return "", fmt.Errorf("reading namespace %s, which identifies the cluster: %w", name, err)
	}
	if ns.UID == "" {
		return "", fmt.Errorf("namespace %s, which identifies the cluster, has no UID", name)
	}
	return ns.UID, nil
}

// ErrIdentity reports that it cannot be told whether two contexts reach one cluster.
type ErrIdentity struct {
	// Side is the one whose user lacks a right, and Namespace what that user would have to read.
	Side      plans.Side
	Namespace string
	// Why is the answer of the API server, if a set's own namespace cannot be read.
	Why error
}

func (e ErrIdentity) Error() string {
	if e.Why != nil {
		return fmt.Sprintf("you may read neither namespace kube-system nor namespace %s, by one of which the cluster is known (if %[1]s does not exist, only a right in the whole cluster shows that)", e.Namespace)
	}
	return fmt.Sprintf("you may not read namespace kube-system on both sides, so that it cannot be told whether they are one cluster: ask for the right to get namespace %s on the %s as well, or kube-system on both sides", e.Namespace, e.Side)
}

func (e ErrIdentity) Unwrap() error { return e.Why }

// Identify fills in by what the clusters of two sets are known: by the UID of kube-system, as far as the users of both sides may
// read it, otherwise by a namespace of the sets. It returns the side that an error is about.
func Identify(ctx context.Context, on map[plans.Side]client.Client, sets map[plans.Side]plans.Ref) (plans.Side, error) {
	barred := false
	uids := map[plans.Side]types.UID{}
	for _, side := range plans.Sides() {
		uid, err := ClusterUID(ctx, on[side])
		switch {
		case apierrors.IsForbidden(err):
			barred = true
		case err != nil:
			return side, err
		}
		uids[side] = uid
	}
	if barred {
		return identifyByNamespaces(ctx, on, sets)
	}
	for side, uid := range uids {
		known(sets, side, uid, "")
	}
	return "", nil
}

func known(sets map[plans.Side]plans.Ref, side plans.Side, uid types.UID, by string) {
	set := sets[side]
	set.Cluster, set.KnownBy = uid, by
	sets[side] = set
}

// identifyByNamespaces reads the destination's namespace through both contexts. One UID of both is one cluster. The source's own
// namespace identifies it only when they are proven to be two.
func identifyByNamespaces(ctx context.Context, on map[plans.Side]client.Client, sets map[plans.Side]plans.Ref) (plans.Side, error) {
	own := map[plans.Side]types.UID{}
	for _, side := range plans.Sides() {
		uid, err := namespaceUID(ctx, on[side], sets[side].Namespace)
		switch {
		case apierrors.IsForbidden(err):
			return side, ErrIdentity{side, sets[side].Namespace, err}
		case apierrors.IsNotFound(err):
			return side, fmt.Errorf("namespace %s does not exist there: create it, or name another: %w", sets[side].Namespace, err)
		case err != nil:
			return side, err
		}
		own[side] = uid
	}
	shared := sets[plans.Destination].Namespace
	seen, err := namespaceUID(ctx, on[plans.Source], shared)
	switch {
	case err == nil && seen == own[plans.Destination]:
		for side := range own {
			known(sets, side, seen, shared)
		}
		return "", nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return plans.Source, err
	}
	two, err := twoClusters(ctx, on, sets)
	if err != nil {
		return plans.Source, err
	}
	if !two {
		return plans.Source, ErrIdentity{Side: plans.Source, Namespace: shared}
	}
	for side, uid := range own {
		known(sets, side, uid, sets[side].Namespace)
	}
	return "", nil
}

// rootCA is the ConfigMap in each namespace with the certificates by which pods know the API server.
const rootCA = "kube-root-ca.crt"

// twoClusters reports whether two contexts are proven to reach two clusters, by two signs that do not depend on each other: pods
// trust other API servers, and lists of pods have versions that go back, which those of one store never do. One sign alone
// may be a certificate that is being replaced, or a proxy that answers from memory.
func twoClusters(ctx context.Context, on map[plans.Side]client.Client, sets map[plans.Side]plans.Ref) (bool, error) {
	trusted := map[plans.Side]string{}
	for _, side := range plans.Sides() {
		var cm corev1.ConfigMap
		err := on[side].Get(ctx, client.ObjectKey{Namespace: sets[side].Namespace, Name: rootCA}, &cm)
		if err != nil {
			return false, unproven(err)
		}
		trusted[side] = cm.Data["ca.crt"]
	}
	if trusted[plans.Source] == "" || trusted[plans.Destination] == "" || trusted[plans.Source] == trusted[plans.Destination] {
		return false, nil
	}
	var versions []string // of the source, of the destination, and so on
	for range 3 {
		for _, side := range plans.Sides() {
			version, err := Revision(ctx, on[side], sets[side].Namespace)
			if err != nil {
				return false, unproven(err)
			}
			versions = append(versions, version)
		}
	}
	return goBack(versions), nil
}

// unproven returns nil for the answers that only say that something cannot be looked at.
func unproven(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// goBack reports whether versions that were read of two stores in turn go back, while those of each store do not.
func goBack(versions []string) bool {
	back := false
	for k := range versions {
		if k > 0 {
			order, err := resourceversion.CompareResourceVersion(versions[k], versions[k-1])
			if err != nil {
				return false
			}
			back = back || order < 0
		}
		if k > 1 {
			if order, err := resourceversion.CompareResourceVersion(versions[k], versions[k-2]); err != nil || order < 0 {
				return false
			}
		}
	}
	return back
}

type lister interface {
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
}

// Revision returns how far the store of a cluster has come, as a list of the pods of a namespace says. The client must be
// live.
func Revision(ctx context.Context, c lister, namespace string) (string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return "", fmt.Errorf("listing a pod of namespace %s: %w", namespace, err)
	}
	return pods.ResourceVersion, nil
}
