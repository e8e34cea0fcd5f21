package dns

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// MadeSlice returns a slice of a plan, by its name, as it is before it lists a pod.
func MadeSlice(p *plans.Plan, namespace, name string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Endpoints: []discoveryv1.Endpoint{}, Ports: []discoveryv1.EndpointPort{}}
	for _, d := range p.Directories() {
		for _, t := range addressTypes() {
			for o := p.Start; o < p.End(); o += maxEndpointsPerSlice {
				if d.Namespace == namespace && sliceName(p, d, t, o) == name {
					out.Labels, out.AddressType = marks(p, d, &corev1.Service{}), t
				}
			}
		}
	}
	return out
}

// MadeService returns the Service that stands in for the model, the governing Service of the other side.
func MadeService(p *plans.Plan, namespace string, model *corev1.Service) *corev1.Service {
	return standIn(p, plans.Directory{Namespace: namespace}, model)
}

// MadeExport returns the export of the governing Service of a side.
func MadeExport(p *plans.Plan, side plans.Side) *mcsv1alpha1.ServiceExport {
	return &mcsv1alpha1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.On(side).Namespace, Name: p.Names.Service, Labels: map[string]string{PlanLabel: p.ID},
	}}
}
