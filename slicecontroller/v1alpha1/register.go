package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &StatefulSetSlice{}, &StatefulSetSliceList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// ProtectionFinalizer is the finalizer by which the controller keeps a slice with deletion protection.
const ProtectionFinalizer = "apps.stsmigrate.dev/deletion-protection"

// SchemeGroupVersion is GroupVersion for generated code.
var SchemeGroupVersion = GroupVersion() //nolint:gochecknoglobals // by this name
