package clusters

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// Scheme returns a scheme with every type that the clients of Clusters read and write.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s)) // fails only for types that were registered twice
	utilruntime.Must(mcsv1alpha1.Install(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}
