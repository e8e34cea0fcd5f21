package clusters

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reads"
)

// listedClient answers reads of single claims and volumes from lists. It is safe for concurrent use.
type listedClient struct {
	client.Client
	namespaces map[string]bool
	claims     listing[*corev1.PersistentVolumeClaim]
	volumes    listing[*corev1.PersistentVolume]
	lock       sync.Mutex
	answers    map[question]*reply
}

// question is a read of an object, or of a list if Name is empty.
type question struct {
	kind string
	client.ObjectKey
}

// reply is the answer to a question: nil for an object that does not exist. A caller that asks while it is being read
// waits for it.
type reply struct {
	lock   sync.Mutex
	done   bool
	answer runtime.Object
	err    error
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
	if len(opts) > 0 { // among them that of a live read
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
	return c.once(question{kindIn(into), key}, into, func() error { return c.Client.Get(ctx, key, into) })
}

// List implements client.Reader.
func (c *listedClient) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(opts)
	plain := client.ListOptions{Namespace: asked.Namespace}
	if reads.AreLive(opts) || !reflect.DeepEqual(*asked, plain) {
		return c.Client.List(ctx, into, opts...)
	}
	return c.once(question{kindIn(into), client.ObjectKey{Namespace: asked.Namespace}}, into, func() error { return c.Client.List(ctx, into, &plain) })
}

// kindIn returns the Go type that an answer is read into and, for a type that holds any kind, the kind.
func kindIn(into runtime.Object) string {
	return fmt.Sprintf("%T %s", into, into.GetObjectKind().GroupVersionKind())
}

// once fills in the answer to a question. It reads it on the first call, and again after a read that failed.
func (c *listedClient) once(q question, into runtime.Object, read func() error) error {
	c.lock.Lock()
	r := c.answers[q]
	if r == nil {
		r = &reply{}
		c.answers[q] = r
	}
	c.lock.Unlock()
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.done {
		if r.err == nil {
			assign(into, r.answer.DeepCopyObject())
		}
		return r.err
	}
	err := read()
	if err == nil || apierrors.IsNotFound(err) {
		r.done, r.err, r.answer = true, err, into.DeepCopyObject()
	}
	return err
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
			var list corev1.PersistentVolumeClaimList
			if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for k := range list.Items {
				take(&list.Items[k], true)
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
