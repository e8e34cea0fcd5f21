package slicecontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// kind is a kind of sets: how they are read and what they are called.
type kind struct {
	// component is the source of the events about them (EV-1).
	component string
	// lease is what the processes that take care of the kind elect their leader with.
	lease string
	gvk   schema.GroupVersionKind
	empty func() client.Object
	list  func() client.ObjectList
	// undefaulted says that the API server does not fill in pod templates of this kind, so
	// that they have to be before anything is made from them (RV-13).
	undefaulted bool
	// read gives an object in the words of the core. Nothing in it may be written to.
	read func(client.Object) *core.Set
	// tell puts a status into an object.
	tell func(client.Object, core.Status)
	// unknown names the fields of an object that this release does not know.
	unknown func(client.Object) []string
	// fit says, before the first pass, why this process cannot take care of the kind.
	fit func(context.Context, client.Client, *rest.Config) error
	// evicts says that sets of the kind may ask for evictions, and wait for budgets.
	evicts bool
	// guarded says that another controller may take care of the kind, and must not.
	guarded bool
}

// native are StatefulSets, done as the built-in controller does them.
func native(traits core.Traits) kind {
	traits.Kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	return kind{
		component: "statefulset-controller",
		lease:     "slicecontroller.apps",
		gvk:       traits.Kind,
		empty:     func() client.Object { return &appsv1.StatefulSet{} },
		list:      func() client.ObjectList { return &appsv1.StatefulSetList{} },
		read: func(o client.Object) *core.Set {
			s := o.(*appsv1.StatefulSet) //nolint:forcetypeassert // made by empty
			return &core.Set{ObjectMeta: s.ObjectMeta, Spec: s.Spec, Status: core.Status{StatefulSetStatus: s.Status}, Traits: traits}
		},
		tell: func(o client.Object, status core.Status) {
			o.(*appsv1.StatefulSet).Status = status.StatefulSetStatus //nolint:forcetypeassert // made by empty
		},
		unknown: func(client.Object) []string { return nil }, // the API server has dropped them, which is no newer than this release
		fit:     func(context.Context, client.Client, *rest.Config) error { return nil },
		guarded: true,
	}
}
