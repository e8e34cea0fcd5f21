package core

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// World is the observed state of one set. A pass never writes to it.
type World struct {
	Set *Set
	// Pods are those of the set's namespace that it controls, and the orphans that its selector selects.
	Pods []*corev1.Pod
	// Revisions are those that the set controls, and the orphans that its selector selects.
	Revisions []*appsv1.ControllerRevision
	// Claim returns a claim of the set's namespace, or nil.
	Claim func(name string) *corev1.PersistentVolumeClaim
	// Owned are the claims that name the set as an owner.
	Owned []*corev1.PersistentVolumeClaim
	Now   time.Time
	// Wrote is when this process last wrote the status of the set; zero for never.
	Wrote time.Time
}

// Object is any object of the API server.
type Object interface {
	metav1.Object
	runtime.Object
}

// Effects is everything that a Sync may do. Its methods are called from several goroutines at once if the
// set is Parallel. Errors are those of the API server.
type Effects interface {
	Reads
	Writes
	Ownership
	// WriteStatus writes the status of the set.
	WriteStatus(context.Context, Status) error
	// Tell records an Event on the set.
	Tell(Event)
}

// Reads are live: they go to the API server, and to no cache.
type Reads interface {
	// Fresh reads the set (CL-5).
	Fresh(context.Context) (metav1.Object, error)
	// Read reads an object of the set's namespace by its name.
	Read(context.Context, Object) error
	// Default returns a pod template as the API server would store it (RV-3c).
	Default(context.Context, corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error)
}

// Writes are all conditional.
type Writes interface {
	// Create creates an object, and fills in the object with the API server's response.
	Create(context.Context, Object) error
	// Update replaces an object that must still have the resourceVersion it was seen with.
	Update(context.Context, Object) error
	// Delete deletes exactly the object that was seen, by its UID (AM-3).
	Delete(context.Context, Object) error
	// Evict requests the eviction of exactly the pod that was seen, at the version that was seen.
	Evict(context.Context, *corev1.Pod) error
	// Hold adds the finalizer that keeps the set while it is being deleted, or removes it.
	Hold(ctx context.Context, held bool) error
}

// Ownership changes the owner of an object, if it is exactly the object that was seen.
type Ownership interface {
	Adopt(context.Context, Object, metav1.OwnerReference) error
	Release(ctx context.Context, o Object, owner types.UID) error
}

// Event is an Event about the set.
type Event struct {
	Type, Reason, Message string
	// Related is another object that the Event is about, or nil.
	Related Object
	// Once, if not empty, is the key under which the Event is recorded only once.
	Once string
}

// Outcome is the result of a pass.
type Outcome struct {
	// Again is when to reconcile again without any event; zero for never.
	Again time.Time
	// Status is the status that the pass computed, or nil if the pass ended before that.
	Status *Status
	// MaxUnavailable is the effective one. Unavailable is how many pods of the range were missing, not
	// available or terminating when the pass began.
	MaxUnavailable, Unavailable int
	// Forced are the pods that were replaced because they were broken (ER-6).
	Forced []Forced
	// Halted reports whether an enforced update halted in this pass (ER-17).
	Halted bool
}

// Forced is a pod that was replaced because it was broken.
type Forced struct {
	Pod string
	UID types.UID
	// Stuck is for how long it was not ready (MT-5).
	Stuck time.Duration
}
