package clusters

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Listed returns clients for one run of the checks before a start, which are about every claim and volume of a plan.
// They read the claims of the plan's namespaces, and the volumes bound to them, with one list each instead of one by
// one. An object is as it was at the first read of its kind. Where the user may not list, they read one by one.
func (c Clusters) Listed(p *plans.Plan) Clusters {
	out := Clusters{}
	for side, on := range c {
		if _, gone := on.(Gone); gone {
			out[side] = on
			continue
		}
		out[side] = &listedClient{Client: on, namespaces: map[string]bool{p.On(side).Namespace: true}}
	}
	if p.OneCluster() {
		one := &listedClient{Client: c[plans.Source], namespaces: map[string]bool{p.Source.Namespace: true, p.Destination.Namespace: true}}
		out[plans.Source], out[plans.Destination] = one, one
	}
	return out
}

// listedClient answers reads of single claims and volumes from lists. It is safe for concurrent use.
type listedClient struct {
	client.Client
	namespaces map[string]bool
	claims     listing[*corev1.PersistentVolumeClaim]
	volumes    listing[*corev1.PersistentVolume]
}

// listing is what a list has shown. A caller that needs it while it is being read waits for it.
type listing[O client.Object] struct {
	lock sync.Mutex
	done bool
	// kept are the objects that the plan is about. others are the rest, which are read one by one.
	kept   map[client.ObjectKey]O
	others map[client.ObjectKey]bool
}

// Get implements client.Reader.
func (c *listedClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if isLive(ctx) || len(opts) > 0 {
		return c.Client.Get(ctx, key, into, opts...)
	}
	switch into := into.(type) {
	case *corev1.PersistentVolumeClaim:
		if !c.namespaces[key.Namespace] {
			break
		}
		found, known, err := c.claims.find(key, c.listClaims(ctx))
		switch {
		case err != nil:
			return err
		case found != nil:
			found.DeepCopyInto(into)
			return nil
		case known:
			return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumeclaims"}, key.Name)
		}
	case *corev1.PersistentVolume:
		found, known, err := c.volumes.find(key, c.listVolumes(ctx))
		switch {
		case err != nil:
			return err
		case found != nil:
			found.DeepCopyInto(into)
			return nil
		case known:
			return apierrors.NewNotFound(schema.GroupResource{Resource: "persistentvolumes"}, key.Name)
		}
	}
	return c.Client.Get(ctx, key, into, opts...)
}

// find returns an object of the list, nil if the list has not kept it. known reports that it does not exist. read
// passes each object of the list, and whether to keep it, to its argument.
func (l *listing[O]) find(key client.ObjectKey, read func(func(O, bool)) error) (found O, known bool, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.done {
		l.kept, l.others = map[client.ObjectKey]O{}, map[client.ObjectKey]bool{}
		err := read(func(o O, keep bool) {
			key := client.ObjectKeyFromObject(o)
			if keep {
				l.kept[key], _ = o.DeepCopyObject().(O)
			} else {
				l.others[key] = true
			}
		})
		if apierrors.IsForbidden(err) {
			l.others = nil
		} else if err != nil {
			return found, false, err
		}
		l.done = true
	}
	return l.kept[key], l.others != nil && !l.others[key], nil
}

func (c *listedClient) listClaims(ctx context.Context) func(func(*corev1.PersistentVolumeClaim, bool)) error {
	return func(take func(*corev1.PersistentVolumeClaim, bool)) error {
		for namespace := range c.namespaces {
			err := Each(ctx, c.Client, func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} },
				func(o *corev1.PersistentVolumeClaim) { take(o, true) }, client.InNamespace(namespace))
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *listedClient) listVolumes(ctx context.Context) func(func(*corev1.PersistentVolume, bool)) error {
	return func(take func(*corev1.PersistentVolume, bool)) error {
		return Each(ctx, c.Client, func() client.ObjectList { return &corev1.PersistentVolumeList{} },
			func(o *corev1.PersistentVolume) {
				take(o, o.Spec.ClaimRef != nil && c.namespaces[o.Spec.ClaimRef.Namespace])
			})
	}
}
