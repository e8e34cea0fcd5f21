package orchestrator

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Watches are the watches of one cluster. Everybody who wants to know of the same kind
// in the same namespace shares one, which ends with the last of them: many plans cost no more
// than the namespaces that they are about.
type Watches struct {
	of   metadata.Interface
	lock sync.Mutex
	open map[subject]*watched
}

// subject is what one watch is about; all namespaces without one.
type subject struct {
	resource  schema.GroupVersionResource
	namespace string
}

// watched is a watch that is under way.
type watched struct {
	cache.SharedIndexInformer
	users int
	stop  chan struct{}
}

// NewWatches returns those of a cluster. Nothing is watched yet.
func NewWatches(config *rest.Config) (*Watches, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Watches{of: c, open: map[subject]*watched{}}, nil
}

// follow tells of everything that there is of a subject, and of every change, until ctx
// ends.
func (w *Watches) follow(ctx context.Context, s subject, tell func(o any, gone bool)) {
	w.lock.Lock()
	defer w.lock.Unlock()
	one := w.open[s]
	if one == nil {
		one = &watched{SharedIndexInformer: metadatainformer.NewFilteredMetadataInformer(w.of, s.resource, s.namespace, 0, cache.Indexers{}, nil).Informer(), stop: make(chan struct{})}
		_ = one.SetTransform(nameOnly) // fails only after the start
		w.open[s] = one
		go one.Run(one.stop)
	}
	one.users++
	// It fails only for an informer that has been stopped, which is not open any more.
	told, _ := one.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(o, false) },
		UpdateFunc: func(_, o any) { tell(o, false) },
		DeleteFunc: func(o any) { tell(o, true) },
	})
	context.AfterFunc(ctx, func() { w.leave(s, one, told) })
}

func (w *Watches) leave(s subject, one *watched, told cache.ResourceEventHandlerRegistration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	_ = one.RemoveEventHandler(told) // it was added
	if one.users--; one.users == 0 {
		delete(w.open, s)
		close(one.stop)
	}
}

// nameOnly keeps of an object its name and version: a cluster may have many volumes.
func nameOnly(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		}}, nil
	}
	return o, nil
}
