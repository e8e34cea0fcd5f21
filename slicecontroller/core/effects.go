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

// World is what is seen of one set. Nothing in it is written to.
type World struct {
	Set *Set
	// Pods are those of the set's namespace that it controls, and the orphans that its
	// selector selects.
	Pods []*corev1.Pod
	// Revisions are, in the same way, those of the set.
	Revisions []*appsv1.ControllerRevision
	// Claim gives a claim of the set's namespace, or nil.
	Claim func(name string) *corev1.PersistentVolumeClaim
	// Owned are the claims that name the set as an owner.
	Owned []*corev1.PersistentVolumeClaim
	Now   time.Time
}

// Object is anything that the API server keeps.
type Object interface {
	metav1.Object
	runtime.Object
}

// Effects is everything that a Sync may do. Its methods are called from several
// goroutines at once where the set is Parallel. Errors are those of the API server.
type Effects interface {
	Reads
	Writes
	Ownership
	// WriteStatus writes the status of the set.
	WriteStatus(context.Context, Status) error
	// Tell records an Event on the set.
	Tell(Event)
}

// Reads ask the API server, and no cache.
type Reads interface {
	// Fresh reads the set (CL-5).
	Fresh(context.Context) (metav1.Object, error)
	// Read reads an object of the set's namespace by its name.
	Read(context.Context, Object) error
	// Default gives a pod template as it would be stored (RV-3c).
	Default(context.Context, corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error)
}

// Writes are conditional, all of them.
type Writes interface {
	// Create makes an object, and fills in what the API server made of it.
	Create(context.Context, Object) error
	// Update replaces an object that must still have the resourceVersion it was seen with.
	Update(context.Context, Object) error
	// Delete deletes the very object that was seen, by its UID (AM-3).
	Delete(context.Context, Object) error
	// Evict asks for the eviction of the very pod that was seen, as it was seen.
	Evict(context.Context, *corev1.Pod) error
	// Hold puts the finalizer on the set that keeps it while it is being deleted, or takes it off.
	Hold(ctx context.Context, held bool) error
}

// Ownership changes whose an object is, if it is the very one that was seen.
type Ownership interface {
	Adopt(context.Context, Object, metav1.OwnerReference) error
	Release(ctx context.Context, o Object, owner types.UID) error
}

// Event is worth telling whoever looks at the set.
type Event struct {
	Type, Reason, Message string
	// Related is another object that it is about, or nil.
	Related Object
	// Once, if it is not empty, is what it is told about once only.
	Once string
}

// Outcome is what a pass came to.
type Outcome struct {
	// Again is when to look again without any event; zero for never.
	Again time.Time
	// Status is the status that the set has now, and nil when it could not be told.
	Status *Status
	// MaxUnavailable is the effective one, and Unavailable how many pods of the range
	// were missing, not available or terminating when the pass began.
	MaxUnavailable, Unavailable int
	// Forced are the pods that were replaced because they were broken (ER-6).
	Forced []Forced
	// Halted says that an enforced update came to a halt in this pass (ER-17).
	Halted bool
}

// Forced is a pod that was replaced because it was broken.
type Forced struct {
	Pod string
	UID types.UID
	// Stuck is for how long it was not ready (MT-5).
	Stuck time.Duration
}
