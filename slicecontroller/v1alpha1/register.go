package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddToScheme teaches a scheme the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &StatefulSetSlice{}, &StatefulSetSliceList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// SchemeGroupVersion is GroupVersion for code that is generated.
var SchemeGroupVersion = GroupVersion() //nolint:gochecknoglobals // by this name
