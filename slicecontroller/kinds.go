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
	// component is the source of the events about sets of the kind (EV-1).
	component string
	// lease is the name of the Lease for the leader election among the processes of the kind.
	lease string
	gvk   schema.GroupVersionKind
	empty func() client.Object
	list  func() client.ObjectList
	// undefaulted means that the API server does not default pod templates of this kind. They must be
	// defaulted BEFORE anything is created from them (RV-13).
	undefaulted bool
	// read converts an object to a core.Set. The caller must not modify the result.
	read func(client.Object) *core.Set
	// tell sets the status of an object.
	tell func(client.Object, core.Status)
	// unknown lists the fields of an object that this release does not know.
	unknown func(client.Object) []string
	// fit returns, before the first pass, why this process cannot reconcile the kind, or nil.
	fit func(context.Context, client.Client, *rest.Config) error
	// evicts means that sets of the kind may request evictions, and wait for budgets.
	evicts bool
	// guarded means that another controller could reconcile the kind, and must not.
	guarded bool
}

// native returns the kind StatefulSet, reconciled as the built-in controller does it.
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
		unknown: func(client.Object) []string { return nil }, // the API server, which is no newer than this release, has dropped them
		fit:     func(context.Context, client.Client, *rest.Config) error { return nil },
		guarded: true,
	}
}
